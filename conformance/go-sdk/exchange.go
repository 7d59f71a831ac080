package main

import (
	"context"
	"strings"
	"time"

	"chainguard.dev/sdk/auth"
	clients "chainguard.dev/sdk/proto/chainguard/platform/clients/v2"
	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	"chainguard.dev/sdk/proto/platform"
	"chainguard.dev/sdk/sts"
	"chainguard.dev/sdk/uidp"
	"golang.org/x/oauth2"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"
)

func exchange(ctx context.Context, w *world) {
	works := func(token string) error {
		api, err := clients.NewClients(ctx, w.base, agent, bearer(ctx, token))
		if err != nil {
			return err
		}
		defer api.Close()
		_, err = api.IAM().GroupsService().GetGroup(ctx, &iam.GetGroupRequest{Uid: w.org})
		return err
	}
	ways := []struct {
		name string
		opts []sts.ExchangerOption
	}{
		{"over gRPC", nil},
		{"with the HTTP/1 downgrade", []sts.ExchangerOption{sts.WithHTTP1Downgrade()}},
	}
	for _, way := range ways {
		swap := func(token string, opts ...sts.ExchangerOption) (sts.TokenPair, error) {
			return sts.ExchangePair(ctx, w.base, w.base, token, append(opts, way.opts...)...)
		}
		check("an exchange "+way.name, func() error {
			pair := must(swap(w.upstream, sts.WithIdentity(w.identity)))
			left := time.Until(pair.Expiry)
			that(left > 59*time.Minute && left <= time.Hour+5*time.Second, "it expires in %s", left)
			same(must(auth.ExtractExpiry(pair.AccessToken)).Unix(), pair.Expiry.Unix(), "exp")
			return works(pair.AccessToken)
		})
		check("without an identity, inside an organization "+way.name, func() error {
			pair, err := swap(w.upstream, sts.WithScope(w.org))
			if err == nil {
				// The subject may be matched by one identity of the organization only.
				_, subject, _ := auth.ExtractIssuerAndSubject(pair.AccessToken)
				same(subject, w.identity, "sub")
			}
			return err
		})
		check("without an identity and an organization "+way.name, func() error {
			_, err := swap(w.upstream)
			that(err != nil && strings.Contains(err.Error(), "no identity found"), "refused with %v", err)
			return nil
		})
		check("narrowed by a capability "+way.name, func() error {
			pair := must(swap(w.upstream, sts.WithIdentity(w.identity), sts.WithCapabilities("groups.list")))
			api := must(clients.NewClients(ctx, w.base, agent, bearer(ctx, pair.AccessToken)))
			defer api.Close()
			must(api.IAM().GroupsService().GetGroup(ctx, &iam.GetGroupRequest{Uid: w.org}))
			_, err := api.IAM().GroupsService().CreateGroup(ctx, &iam.CreateGroupRequest{Parent: w.org, Group: &iam.Group{Name: unique("narrow")}})
			refused(err, codes.PermissionDenied)
			return nil
		})
		check("a forged token "+way.name, func() error {
			parts := strings.Split(w.upstream, ".")
			signature := []byte(parts[2])
			signature[10] ^= 1
			_, err := swap(parts[0]+"."+parts[1]+"."+string(signature), sts.WithIdentity(w.identity))
			refused(err, codes.Unauthenticated)
			return nil
		})
		check("a bad identity "+way.name, func() error {
			_, err := swap(w.upstream, sts.WithIdentity("not-a-uidp"))
			refused(err, codes.InvalidArgument)
			return nil
		})
		check("no audience "+way.name, func() error {
			_, err := sts.ExchangePair(ctx, w.base, "", w.upstream, append(way.opts, sts.WithIdentity(w.identity))...)
			refused(err, codes.InvalidArgument)
			return nil
		})
	}
	check("the downgrade exchanger by its own constructor", func() error {
		pair, err := sts.NewHTTP1DowngradeExchanger(w.base, w.base, sts.WithIdentity(w.identity)).Exchange(ctx, w.upstream)
		if err != nil {
			return err
		}
		return works(pair.AccessToken)
	})
	check("a token source", func() error {
		upstream := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: w.upstream})
		token := must(sts.NewTokenSourceFromValues(ctx, w.base, w.base, w.identity, upstream).Token())
		return works(token.AccessToken)
	})
	check("a user agent that has grown to 40,000 bytes, as in one long run of the Terraform provider", func() error {
		api := must(clients.NewClients(ctx, w.base, strings.Repeat("grown/1 ", 5000), bearer(ctx, w.token)))
		defer api.Close()
		must(api.IAM().GroupsService().GetGroup(ctx, &iam.GetGroupRequest{Uid: w.org}))
		return nil
	})
	check("a refresh token that is none is refused", func() error {
		_, _, err := sts.New(w.base, w.base).Refresh(ctx, "eyJleHAiOjF9")
		refused(err, codes.Unauthenticated)
		return nil
	})
	check("who am I", func() error {
		issuer := must(platform.NewOIDCClients(ctx, w.base, bearer(ctx, w.token)))
		defer issuer.Close()
		me := must(issuer.Auth().Validate(ctx, &emptypb.Empty{}))
		same([]string{me.GetIssuer(), me.GetSubject()}, []string{w.base, w.identity}, "issuer and subject")
		same(me.GetAudience(), []string{w.base}, "audience")
		same(len(me.GetCapabilities()), 1, "number of groups with capabilities")
		same([]string{me.GetCapabilities()[0].GetGroup().GetId(), me.GetCapabilities()[0].GetRole().GetName()}, []string{w.org, "owner"}, "group and role")
		return nil
	})
	check("uids are UIDPs as the SDK reads them", func() error {
		same([]bool{uidp.InRoot(w.org), uidp.IsAncestor(w.org, w.identity)}, []bool{true, true}, "in root, ancestor")
		same([]string{uidp.Parent(w.identity), uidp.Root(w.identity)}, []string{w.org, w.org}, "parent and root")
		same(len(w.org), len(uidp.NewUID()), "length of a root uid")
		same(len(w.identity), len(uidp.NewUIDP(uidp.UIDP(w.org))), "length of a uid below it")
		return nil
	})
}
