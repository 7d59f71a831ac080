package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"chainguard.dev/sdk/auth"
	clients "chainguard.dev/sdk/proto/chainguard/platform/clients/v2"
	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	registry "chainguard.dev/sdk/proto/chainguard/platform/registry/v2"
	"chainguard.dev/sdk/proto/platform"
	"chainguard.dev/sdk/sts"
	"google.golang.org/grpc/credentials"
)

const agent = "bowline-conformance"

// world is what the suites work in: an organization that the operator made,
// and an identity in it which owns it and matches the upstream token.
type world struct {
	base, upstream  string
	issuer, subject string
	org, identity   string
	owner, viewer   string // uids of the built-in roles
	token           string // of the identity, by exchange
	operatorToken   string
	sts             string // address of the stand-in for AWS, if there is one

	operator clients.Clients
	v2       clients.Clients
	v1       platform.Clients
}

func bearer(ctx context.Context, token string) credentials.PerRPCCredentials {
	return auth.NewFromToken(ctx, "Bearer "+token, false)
}

func unique(prefix string) string {
	var b [4]byte
	_, _ = rand.Read(b[:])
	return prefix + "-" + hex.EncodeToString(b[:])
}

func newWorld(ctx context.Context, base, upstream, operator string) (*world, error) {
	w := &world{base: strings.TrimSuffix(base, "/"), upstream: upstream, operatorToken: operator}
	if err := reachable(w.base); err != nil {
		return nil, err
	}
	var err error
	if w.issuer, w.subject, err = auth.ExtractIssuerAndSubject(upstream); err != nil {
		return nil, err
	}
	if w.operator, err = clients.NewClients(ctx, w.base, agent, bearer(ctx, operator)); err != nil {
		return nil, err
	}
	if w.owner, err = w.role(ctx, "owner"); err != nil {
		return nil, err
	}
	if w.viewer, err = w.role(ctx, "viewer"); err != nil {
		return nil, err
	}
	org, err := w.operator.IAM().GroupsService().CreateGroup(ctx, &iam.CreateGroupRequest{Group: &iam.Group{Name: unique("sdk")}})
	if err != nil {
		return nil, fmt.Errorf("creating the organization: %w", err)
	}
	w.org = org.GetUid()
	made, err := w.operator.IAM().IdentitiesService().CreateIdentity(ctx, &iam.CreateIdentityRequest{
		Parent:   w.org,
		Identity: claimMatch(unique("workload"), w.issuer, w.subject),
	})
	if err != nil {
		return nil, fmt.Errorf("creating the identity: %w", err)
	}
	w.identity = made.GetUid()
	if _, err := w.operator.IAM().RoleBindingsService().CreateRoleBinding(ctx, &iam.CreateRoleBindingRequest{
		Parent:      w.org,
		RoleBinding: &iam.RoleBinding{IdentityUid: w.identity, RoleUid: w.owner},
	}); err != nil {
		return nil, fmt.Errorf("binding the identity: %w", err)
	}
	pair, err := sts.ExchangePair(ctx, w.base, w.base, upstream, sts.WithIdentity(w.identity))
	if err != nil {
		return nil, err
	}
	w.token = pair.AccessToken
	if w.v2, err = clients.NewClients(ctx, w.base, agent, bearer(ctx, w.token)); err != nil {
		return nil, err
	}
	w.v1, err = platform.NewPlatformClients(ctx, w.base, bearer(ctx, w.token))
	return w, err
}

// close takes the identity away, so that another run is again the only one
// whose identity matches the upstream token.
func (w *world) close(ctx context.Context) {
	_, _ = w.operator.IAM().IdentitiesService().DeleteIdentity(ctx, &iam.DeleteIdentityRequest{Uid: w.identity})
	_ = w.operator.Close()
	_ = w.v2.Close()
	_ = w.v1.Close()
}

// reachable fails at once where the SDK would wait.
func reachable(base string) error {
	answer, err := http.Get(base + "/ping/v2/ping")
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func (w *world) role(ctx context.Context, name string) (string, error) {
	found, err := w.operator.IAM().ListRolesAll(ctx, &iam.ListRolesRequest{Name: name})
	if err != nil {
		return "", fmt.Errorf("listing the roles named %s: %w", name, err)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d roles are named %s", len(found), name)
	}
	return found[0].GetUid(), nil
}

func (w *world) group(ctx context.Context, parent, name string) string {
	made := must(w.v2.IAM().GroupsService().CreateGroup(ctx, &iam.CreateGroupRequest{Parent: parent, Group: &iam.Group{Name: unique(name)}}))
	return made.GetUid()
}

func (w *world) repo(ctx context.Context, parent, name string) *registry.Repo {
	return must(w.v2.Registry().ReposService().CreateRepo(ctx, &registry.CreateRepoRequest{Parent: parent, Repo: &registry.Repo{Name: name}}))
}

func claimMatch(name, issuer, subject string) *iam.Identity {
	return &iam.Identity{Name: name, Relationship: &iam.Identity_ClaimMatch_{ClaimMatch: &iam.Identity_ClaimMatch{
		Iss: &iam.Identity_ClaimMatch_Issuer{Issuer: issuer},
		Sub: &iam.Identity_ClaimMatch_Subject{Subject: subject},
	}}}
}
