package main

import (
	"context"
	"slices"

	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	"chainguard.dev/sdk/proto/chainguard/platform/iter"
	registry "chainguard.dev/sdk/proto/chainguard/platform/registry/v2"
	common "chainguard.dev/sdk/proto/platform/common/v1"
)

func iterators(ctx context.Context, w *world) {
	const total = 130
	group := w.group(ctx, w.org, "iterated")
	var uids []string
	for range total {
		uids = append(uids, w.repo(ctx, group, unique("iterated")).GetUid())
	}
	slices.Sort(uids)
	scope := &common.UIDPFilter{ChildrenOf: group}
	api := w.v2.Registry()

	check("over more than two default pages", func() error {
		var got []string
		for repo, err := range api.ListReposIter(ctx, &registry.ListReposRequest{Uidp: scope}) {
			if err != nil {
				return err
			}
			got = append(got, repo.GetUid())
		}
		same(got, uids, "uids, in the default order")
		return nil
	})
	check("in pages of 7, ordered by name", func() error {
		var names []string
		for _, repo := range must(api.ListReposAll(ctx, &registry.ListReposRequest{Uidp: scope, PageSize: 7, OrderBy: "name"})) {
			names = append(names, repo.GetName())
		}
		same(len(names), total, "number of names")
		that(slices.IsSorted(names), "the names are not in order")
		return nil
	})
	check("with a fetch of our own: pages, counts, an end", func() error {
		var sizes []int
		all := must(iter.All(iter.Paginate(ctx, &registry.ListReposRequest{Uidp: scope, PageSize: 60}, "repos",
			func(ctx context.Context, r *registry.ListReposRequest) ([]*registry.Repo, string, error) {
				answer, err := api.ReposService().ListRepos(ctx, r)
				if err != nil {
					return nil, "", err
				}
				sizes = append(sizes, len(answer.GetRepos()))
				same(answer.GetTotalCount(), int64(total), "total_count")
				return answer.GetRepos(), answer.GetNextPageToken(), nil
			})))
		same([]any{len(all), sizes}, []any{total, []int{60, 60, 10}}, "rows and rows per page")
		return nil
	})
	check("left early", func() error {
		seen := 0
		for _, err := range api.ListReposIter(ctx, &registry.ListReposRequest{Uidp: scope, PageSize: 10}) {
			if err != nil {
				return err
			}
			if seen++; seen == 15 {
				break
			}
		}
		same(seen, 15, "rows")
		return nil
	})
	check("over nothing", func() error {
		empty := w.group(ctx, w.org, "empty")
		same(len(must(api.ListReposAll(ctx, &registry.ListReposRequest{Uidp: &common.UIDPFilter{ChildrenOf: empty}}))), 0, "rows")
		return nil
	})
	check("over groups, with nothing asked for", func() error {
		all := must(w.v2.IAM().ListGroupsAll(ctx, nil))
		that(slices.ContainsFunc(all, func(g *iam.Group) bool { return g.GetUid() == group }), "the group is not among %d", len(all))
		return nil
	})
	check("skip is told", func() error {
		answer := must(api.ReposService().ListRepos(ctx, &registry.ListReposRequest{Uidp: scope, PageSize: 10, Skip: 125}))
		same([]any{len(answer.GetRepos()), answer.GetSkipped(), answer.GetTotalCount(), answer.GetNextPageToken()}, []any{5, int32(125), int64(total), ""}, "rows, skipped, total_count, next_page_token")
		return nil
	})
}
