package main

import (
	"context"
	"slices"

	v2 "chainguard.dev/sdk/proto/chainguard/platform/registry/v2"
	common "chainguard.dev/sdk/proto/platform/common/v1"
	iam "chainguard.dev/sdk/proto/platform/iam/v1"
	registry "chainguard.dev/sdk/proto/platform/registry/v1"
	"chainguard.dev/sdk/uidp"
	"google.golang.org/grpc/codes"
)

func platformV1(ctx context.Context, w *world) {
	api, repos := w.v1.IAM(), w.v1.Registry().Registry()

	check("a group: create, list, replace, delete", func() error {
		made := must(api.Groups().Create(ctx, &iam.CreateGroupRequest{Parent: w.org, Group: &iam.Group{Name: unique("old"), Description: "one\ntwo"}}))
		listed := must(api.Groups().List(ctx, &iam.GroupFilter{Id: made.GetId()}))
		same(len(listed.GetItems()), 1, "number of items")
		same(listed.GetItems()[0], made, "the item")
		changed := must(api.Groups().Update(ctx, &iam.Group{Id: made.GetId(), Name: made.GetName()}))
		same(changed.GetDescription(), "", "description")
		must(api.Groups().Delete(ctx, &iam.DeleteGroupRequest{Id: made.GetId()}))
		return nil
	})
	check("a role: capabilities are names", func() error {
		made := must(api.Roles().Create(ctx, &iam.CreateRoleRequest{ParentId: w.org, Role: &iam.Role{Name: unique("old"), Capabilities: []string{"groups.list", "repo.list"}}}))
		same(len(made.GetCapabilities()), 2, "number of capabilities")
		changed := must(api.Roles().Update(ctx, &iam.Role{Id: made.GetId(), Name: made.GetName(), Capabilities: []string{"groups.list"}}))
		same(changed.GetCapabilities(), []string{"groups.list"}, "capabilities")
		_, err := api.Roles().Create(ctx, &iam.CreateRoleRequest{ParentId: w.org, Role: &iam.Role{Name: unique("old"), Capabilities: []string{"groups.levitate"}}})
		refused(err, codes.InvalidArgument)
		must(api.Roles().Delete(ctx, &iam.DeleteRoleRequest{Id: made.GetId()}))
		return nil
	})
	check("an identity, found again by id", func() error {
		made := must(api.Identities().Create(ctx, &iam.CreateIdentityRequest{ParentId: w.org, Identity: &iam.Identity{
			Name: unique("old"), Relationship: &iam.Identity_ClaimMatch_{ClaimMatch: &iam.Identity_ClaimMatch{
				Iss: &iam.Identity_ClaimMatch_Issuer{Issuer: "https://issuer.example.com"},
				Sub: &iam.Identity_ClaimMatch_SubjectPattern{SubjectPattern: "repo:.*"},
			}},
		}}))
		listed := must(api.Identities().List(ctx, &iam.IdentityFilter{Id: made.GetId()}))
		same(len(listed.GetItems()), 1, "number of items")
		same(listed.GetItems()[0].GetClaimMatch().GetSubjectPattern(), "repo:.*", "subject pattern")
		must(api.Identities().Delete(ctx, &iam.DeleteIdentityRequest{Id: made.GetId()}))
		return nil
	})
	check("role bindings: one, a batch, the nested list", func() error {
		group := w.group(ctx, w.org, "old-bindings")
		var uids []string
		for range 3 {
			who := must(api.Identities().Create(ctx, &iam.CreateIdentityRequest{ParentId: group, Identity: &iam.Identity{
				Name: unique("old"), Relationship: &iam.Identity_ClaimMatch_{ClaimMatch: &iam.Identity_ClaimMatch{
					Iss: &iam.Identity_ClaimMatch_Issuer{Issuer: "https://issuer.example.com"},
					Sub: &iam.Identity_ClaimMatch_Subject{Subject: "old"},
				}},
			}}))
			uids = append(uids, who.GetId())
		}
		one := must(api.RoleBindings().Create(ctx, &iam.CreateRoleBindingRequest{Parent: group, RoleBinding: &iam.RoleBinding{Identity: uids[0], Role: w.viewer}}))
		same([]string{one.GetIdentity(), one.GetRole()}, []string{uids[0], w.viewer}, "identity and role")
		batch := must(api.RoleBindings().CreateBatch(ctx, &iam.CreateRoleBindingBatchRequest{Parent: group, RoleBindings: []*iam.RoleBinding{
			{Identity: uids[1], Role: w.viewer}, {Identity: uids[2], Role: w.viewer},
		}}))
		same(len(batch.GetRoleBindings()), 2, "number of bindings in the batch")
		listed := must(api.RoleBindings().List(ctx, &iam.RoleBindingFilter{Uidp: &common.UIDPFilter{ChildrenOf: group}}))
		same(len(listed.GetItems()), 3, "number of bindings")
		for _, item := range listed.GetItems() {
			same([]string{item.GetGroup().GetId(), item.GetRole().GetName(), item.GetClaimMatchSubject()}, []string{group, "viewer", "old"}, "group, role, subject")
		}
		return nil
	})
	check("a repository: create, replace, create again, delete", func() error {
		name := unique("old")
		made := must(repos.CreateRepo(ctx, &registry.CreateRepoRequest{ParentId: w.org, Repo: &registry.Repo{
			Name: name, Readme: "# Title\n", Description: "one", CatalogTier: registry.CatalogTier_BASE, Bundles: []string{"base"}, Aliases: []string{"a/b:c"}, ActiveTags: []string{"latest"},
		}}))
		same(uidp.Parent(made.GetId()), w.org, "parent of the id")
		changed := must(repos.UpdateRepo(ctx, &registry.Repo{Id: made.GetId(), Name: name, Readme: "# Title\n", CatalogTier: registry.CatalogTier_APPLICATION}))
		same([]any{changed.GetReadme(), changed.GetDescription(), changed.GetCatalogTier(), len(changed.GetBundles())}, []any{"# Title\n", "", registry.CatalogTier_APPLICATION, 0}, "readme, description, tier, bundles")
		same(changed.GetCreateTime(), made.GetCreateTime(), "create_time")
		again := must(repos.CreateRepo(ctx, &registry.CreateRepoRequest{ParentId: w.org, Repo: &registry.Repo{Name: name, Description: "again"}}))
		same([]string{again.GetId(), again.GetDescription()}, []string{made.GetId(), "again"}, "id and description")
		_, err := repos.CreateRepo(ctx, &registry.CreateRepoRequest{ParentId: w.org, Repo: &registry.Repo{Name: name}, PreventExisting: true})
		refused(err, codes.AlreadyExists)
		must(repos.DeleteRepo(ctx, &registry.DeleteRepoRequest{Id: made.GetId()}))
		same(len(must(repos.ListRepos(ctx, &registry.RepoFilter{Id: made.GetId()})).GetItems()), 0, "number of items after the delete")
		return nil
	})
	check("what v1 writes v2 reads, and back", func() error {
		made := must(repos.CreateRepo(ctx, &registry.CreateRepoRequest{ParentId: w.org, Repo: &registry.Repo{Name: unique("both"), CatalogTier: registry.CatalogTier_BASE}}))
		read := must(w.v2.Registry().ReposService().GetRepo(ctx, &v2.GetRepoRequest{Uid: made.GetId()}))
		same([]any{read.GetName(), read.GetCatalogTier()}, []any{made.GetName(), v2.CatalogTier_CATALOG_TIER_BASE}, "name and tier")
		must(w.v2.Registry().ReposService().UpdateRepo(ctx, &v2.UpdateRepoRequest{Repo: &v2.Repo{Uid: made.GetId(), Description: "v2"}, UpdateMask: mask("description")}))
		same(must(repos.ListRepos(ctx, &registry.RepoFilter{Id: made.GetId()})).GetItems()[0].GetDescription(), "v2", "description")
		return nil
	})
	check("what is missing is an empty list", func() error {
		absent := uidp.NewUIDP(uidp.UIDP(w.org)).String()
		same(len(must(api.Groups().List(ctx, &iam.GroupFilter{Id: absent})).GetItems()), 0, "number of groups")
		same(len(must(repos.ListRepos(ctx, &registry.RepoFilter{Uidp: &common.UIDPFilter{DescendantsOf: absent}})).GetItems()), 0, "number of repositories")
		return nil
	})
	check("a list is whole", func() error {
		group := w.group(ctx, w.org, "old-whole")
		var names []string
		for range 60 {
			names = append(names, w.repo(ctx, group, unique("whole")).GetName())
		}
		var got []string
		for _, item := range must(repos.ListRepos(ctx, &registry.RepoFilter{Uidp: &common.UIDPFilter{ChildrenOf: group}})).GetItems() {
			got = append(got, item.GetName())
		}
		slices.Sort(names)
		slices.Sort(got)
		same(got, names, "names")
		return nil
	})
}
