// Command oras says with the oras library, unmodified, what oras users say: push, pull, tags and delete.
//
//	oras push IMAGE LAYOUT
//	oras pull IMAGE LAYOUT
//	oras tags REPOSITORY
//	oras delete IMAGE
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "oras:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("say push, pull, tags or delete, and of what")
	}
	repo, err := repository(args[1])
	if err != nil {
		return err
	}
	switch {
	case args[0] == "push" && len(args) == 3:
		return push(ctx, repo, args[2])
	case args[0] == "pull" && len(args) == 3:
		layout, err := oci.New(args[2])
		if err != nil {
			return err
		}
		_, err = oras.Copy(ctx, repo, repo.Reference.Reference, layout, "", oras.DefaultCopyOptions)
		return err
	case args[0] == "tags":
		return repo.Tags(ctx, "", func(tags []string) error {
			for _, tag := range tags {
				fmt.Println(tag)
			}
			return nil
		})
	case args[0] == "delete":
		found, err := repo.Resolve(ctx, repo.Reference.Reference)
		if err != nil {
			return err
		}
		return repo.Delete(ctx, found)
	}
	return fmt.Errorf("%q is not known", args)
}

// repository is that of a reference, with what docker's configuration says of credentials.
func repository(reference string) (*remote.Repository, error) {
	repo, err := remote.NewRepository(reference)
	if err != nil {
		return nil, err
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, err
	}
	repo.PlainHTTP = true
	repo.Client = &auth.Client{Cache: auth.NewCache(), Credential: credentials.Credential(store)}
	return repo, nil
}

// push copies the only image of a layout.
func push(ctx context.Context, repo *remote.Repository, path string) error {
	layout, err := oci.New(path)
	if err != nil {
		return err
	}
	index, err := os.ReadFile(path + "/index.json")
	if err != nil {
		return err
	}
	root, err := only(index)
	if err != nil {
		return err
	}
	if err := oras.CopyGraph(ctx, layout, repo, root, oras.DefaultCopyGraphOptions); err != nil {
		return err
	}
	return repo.Tag(ctx, root, repo.Reference.Reference)
}
