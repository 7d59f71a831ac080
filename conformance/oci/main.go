// Command oci drives a running registry with a public client library, unmodified: pushes, pulls, lists, referrers,
// mounts and deletes; and has the distribution specification's own suite judge it.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// must ends the program with what went wrong.
func must(what string, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL ", what+":", err)
		os.Exit(1)
	}
	fmt.Println("ok   ", what)
}

func check(what string, ok bool) {
	if !ok {
		must(what, errors.New("not so"))
	}
	must(what, nil)
}

// get takes a value that must be there.
func get[T any](what string) func(T, error) T {
	return func(value T, err error) T {
		must(what, err)
		return value
	}
}

func refused(what string, err error, status int) {
	var told *transport.Error
	if !errors.As(err, &told) || told.StatusCode != status {
		must(what, fmt.Errorf("wanted status %d, got %v", status, err))
	}
	must(what, nil)
}

func main() {
	host := strings.TrimPrefix(os.Getenv("BASE_URL"), "http://")
	upstream := os.Getenv("UPSTREAM_TOKEN")
	org, identity := world(upstream)
	auth := remote.WithAuth(&authn.Basic{Username: identity, Password: upstream})
	repo := get[name.Repository]("the name parses")(name.NewRepository(host+"/"+org+"/conformance/app", name.Insecure))
	other := get[name.Repository]("the other name parses")(name.NewRepository(host+"/"+org+"/conformance/other", name.Insecure))

	image := get[v1.Image]("an image is made")(random.Image(300_000, 3))
	tag := repo.Tag("v1")
	must("the image is pushed", remote.Write(tag, image, auth))
	must("it is pushed again", remote.Write(tag, image, auth))
	pulled := get[v1.Image]("it is pulled")(remote.Image(tag, auth))
	must("every byte of it is right", validate.Image(pulled))
	digest := get[v1.Hash]("it has a digest")(image.Digest())
	head := get[*v1.Descriptor]("it is looked at")(remote.Head(tag, auth))
	check("the look shows the digest", head.Digest == digest)

	must("it is pushed elsewhere, its layers mounted", remote.Write(other.Tag("v1"), pulled, auth))
	index := get[v1.ImageIndex]("an index is made")(random.Index(1000, 2, 3))
	must("the index is pushed", remote.WriteIndex(repo.Tag("multi"), index, auth))
	back := get[v1.ImageIndex]("the index is pulled")(remote.Index(repo.Tag("multi"), auth))
	must("every byte of the index is right", validate.Index(back))
	must("a tag is moved", remote.Tag(repo.Tag("v1"), back, auth))
	must("a tag is moved back", remote.Tag(repo.Tag("v1"), image, auth))

	artifact := get[v1.Image]("an artifact is made")(random.Image(100, 1))
	artifact = mutate.ConfigMediaType(artifact, "application/vnd.example+json")
	artifact = mutate.Subject(mutate.MediaType(artifact, types.OCIManifestSchema1), *head).(v1.Image)
	artifactDigest := get[v1.Hash]("the artifact has a digest")(artifact.Digest())
	must("the artifact is pushed", remote.Write(repo.Digest(artifactDigest.String()), artifact, auth))
	found := get[v1.ImageIndex]("referrers are listed")(remote.Referrers(repo.Digest(digest.String()), auth))
	referrers := get[*v1.IndexManifest]("referrers parse")(found.IndexManifest())
	check("the artifact refers", len(referrers.Manifests) == 1 && referrers.Manifests[0].Digest == artifactDigest)
	check("its type is that of its config", referrers.Manifests[0].ArtifactType == "application/vnd.example+json")

	tags := get[[]string]("tags are listed")(remote.List(repo, auth, remote.WithPageSize(1)))
	check("in order, page by page", slices.Equal(tags, []string{"multi", "v1"}))
	registry := get[name.Registry]("the registry's name parses")(name.NewRegistry(host, name.Insecure))
	var all []string
	puller := get[*remote.Puller]("a puller is made")(remote.NewPuller(auth, remote.WithPageSize(1)))
	catalogs := get[*remote.Catalogger]("repositories are listed")(puller.Catalogger(context.Background(), registry))
	for catalogs.HasNext() {
		all = append(all, get[*remote.Catalogs]("a page")(catalogs.Next(context.Background())).Repos...)
	}
	slices.Sort(all)
	check("all are there", slices.Equal(all, []string{org + "/conformance/app", org + "/conformance/other"}))

	_, err := remote.Image(tag)
	refused("nobody pulls", err, http.StatusUnauthorized)
	_, err = remote.Image(repo.Tag("absent"), auth)
	refused("what is absent is not found", err, http.StatusNotFound)
	must("a tag is deleted", remote.Delete(repo.Tag("multi"), auth))
	must("a manifest is deleted", remote.Delete(repo.Digest(digest.String()), auth))
	_, err = remote.Image(tag, auth)
	refused("its tag went with it", err, http.StatusNotFound)
	specification(host, org, identity, upstream)
	keyless(repo, identity, upstream)
}
