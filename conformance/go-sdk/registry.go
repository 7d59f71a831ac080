package main

import (
	"context"
	"time"

	registry "chainguard.dev/sdk/proto/chainguard/platform/registry/v2"
	common "chainguard.dev/sdk/proto/platform/common/v1"
	"google.golang.org/grpc/codes"
)

func registryV2(ctx context.Context, w *world) {
	repos := w.v2.Registry().ReposService()
	full := func(name string) *registry.Repo {
		return &registry.Repo{
			Name: name, Description: "words", CatalogTier: registry.CatalogTier_CATALOG_TIER_BASE,
			Bundles: []string{"base", "ai"}, Aliases: []string{"z/a:1", "a/z:2"}, ActiveTags: []string{"latest", "1"},
		}
	}
	check("create, get, delete", func() error {
		made := must(repos.CreateRepo(ctx, &registry.CreateRepoRequest{Parent: w.org, Repo: full(unique("repo"))}))
		same([]any{made.GetBundles(), made.GetAliases(), made.GetActiveTags()}, []any{[]string{"base", "ai"}, []string{"z/a:1", "a/z:2"}, []string{"latest", "1"}}, "bundles, aliases, active tags")
		same(must(repos.GetRepo(ctx, &registry.GetRepoRequest{Uid: made.GetUid()})), made, "the read")
		must(repos.DeleteRepo(ctx, &registry.DeleteRepoRequest{Uid: made.GetUid()}))
		_, err := repos.DeleteRepo(ctx, &registry.DeleteRepoRequest{Uid: made.GetUid()})
		refused(err, codes.NotFound)
		return nil
	})
	check("an update by a mask changes what the mask names", func() error {
		made := must(repos.CreateRepo(ctx, &registry.CreateRepoRequest{Parent: w.org, Repo: full(unique("masked"))}))
		time.Sleep(5 * time.Millisecond)
		changed := must(repos.UpdateRepo(ctx, &registry.UpdateRepoRequest{
			Repo: &registry.Repo{Uid: made.GetUid(), Name: "ignored", Description: "new"}, UpdateMask: mask("description"),
		}))
		same([]any{changed.GetName(), changed.GetDescription(), changed.GetBundles()}, []any{made.GetName(), "new", made.GetBundles()}, "name, description, bundles")
		that(changed.GetUpdateTime().AsTime().After(made.GetUpdateTime().AsTime()), "update_time did not advance")
		same(changed.GetCreateTime(), made.GetCreateTime(), "create_time")
		return nil
	})
	check("an update without a mask changes the fields that are set", func() error {
		made := must(repos.CreateRepo(ctx, &registry.CreateRepoRequest{Parent: w.org, Repo: full(unique("unmasked"))}))
		changed := must(repos.UpdateRepo(ctx, &registry.UpdateRepoRequest{Repo: &registry.Repo{Uid: made.GetUid(), Description: "new"}}))
		same([]any{changed.GetName(), changed.GetDescription(), changed.GetAliases()}, []any{made.GetName(), "new", made.GetAliases()}, "name, description, aliases")
		return nil
	})
	check("an update by * replaces everything", func() error {
		made := must(repos.CreateRepo(ctx, &registry.CreateRepoRequest{Parent: w.org, Repo: full(unique("replaced"))}))
		changed := must(repos.UpdateRepo(ctx, &registry.UpdateRepoRequest{Repo: &registry.Repo{Uid: made.GetUid(), Name: made.GetName()}, UpdateMask: mask("*")}))
		same([]any{changed.GetDescription(), len(changed.GetBundles()), len(changed.GetAliases()), changed.GetCatalogTier()}, []any{"", 0, 0, registry.CatalogTier_CATALOG_TIER_UNSPECIFIED}, "description, bundles, aliases, tier")
		return nil
	})
	check("a resource written back as it was read is unchanged", func() error {
		made := must(repos.CreateRepo(ctx, &registry.CreateRepoRequest{Parent: w.org, Repo: full(unique("echo"))}))
		changed := must(repos.UpdateRepo(ctx, &registry.UpdateRepoRequest{Repo: made, UpdateMask: mask("*")}))
		changed.UpdateTime = made.GetUpdateTime()
		same(changed, made, "repository")
		return nil
	})
	check("list by parent and name", func() error {
		group := w.group(ctx, w.org, "list")
		made := w.repo(ctx, group, unique("listed"))
		w.repo(ctx, group, unique("other"))
		name := made.GetName()
		answer := must(repos.ListRepos(ctx, &registry.ListReposRequest{Uidp: &common.UIDPFilter{ChildrenOf: group}, Name: &name}))
		same([]any{len(answer.GetRepos()), answer.GetTotalCount(), answer.GetNextPageToken()}, []any{1, int64(1), ""}, "rows, total_count, next_page_token")
		same(answer.GetRepos()[0], made, "the row")
		return nil
	})
}
