package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// keyless pushes and pulls with what the client's own keychain finds: the credential helper, set up by the command line.
func keyless(repo name.Repository, identity, upstream string) {
	home := get[string]("a home")(os.MkdirTemp("", "keyless"))
	defer os.RemoveAll(home)
	for variable, value := range map[string]string{
		"HOME": home, "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": "", "DOCKER_CONFIG": filepath.Join(home, ".docker"),
		"PATH": home + string(os.PathListSeparator) + os.Getenv("PATH"),
	} {
		must(variable+" is set", os.Setenv(variable, value))
	}
	bowline := func(what string, arguments ...string) {
		output, err := exec.Command(os.Getenv("BOWLINE"), arguments...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, output)
		}
		must(what, err)
	}
	bowline("a context is kept", "context", "set", "here", "--api", os.Getenv("BASE_URL"))
	bowline("the helper is set up", "auth", "configure-docker", "--helper-directory", home)
	auth := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	image := get[v1.Image]("another image is made")(random.Image(1000, 2))
	check("before the sign-in nothing is pushed", remote.Write(repo.Tag("keyless"), image, auth) != nil)
	bowline("the job signs in", "auth", "login", "--identity", identity, "--identity-token", upstream)
	must("it is pushed with no password kept", remote.Write(repo.Tag("keyless"), image, auth))
	pulled := get[v1.Image]("it is pulled so too")(remote.Image(repo.Tag("keyless"), auth))
	must("every byte of that is right", validate.Image(pulled))
}
