package main

import (
	"context"
	"strings"

	"chainguard.dev/sdk/proto/capabilities"
	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	common "chainguard.dev/sdk/proto/platform/common/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

func iamV2(ctx context.Context, w *world) {
	api := w.v2.IAM()

	check("a group: create, get, update, list, delete", func() error {
		groups := api.GroupsService()
		name := unique("group")
		made := must(groups.CreateGroup(ctx, &iam.CreateGroupRequest{Parent: w.org, Group: &iam.Group{Name: name, Description: "one"}}))
		that(strings.HasPrefix(made.GetUid(), w.org+"/"), "uid %s", made.GetUid())
		same(must(groups.GetGroup(ctx, &iam.GetGroupRequest{Uid: made.GetUid()})), made, "the read")
		changed := must(groups.UpdateGroup(ctx, &iam.UpdateGroupRequest{
			Group:      &iam.Group{Uid: made.GetUid(), Name: name, Description: "two"},
			UpdateMask: mask("name", "description", "verified"),
		}))
		same([]string{changed.GetName(), changed.GetDescription()}, []string{name, "two"}, "name and description")
		same(must(groups.GetGroup(ctx, &iam.GetGroupRequest{Uid: made.GetUid()})), changed, "the read after the update")
		listed := must(api.ListGroupsAll(ctx, &iam.ListGroupsRequest{Name: name, Uidp: &common.UIDPFilter{ChildrenOf: w.org}}))
		same(len(listed), 1, "number of groups of that name")
		must(groups.DeleteGroup(ctx, &iam.DeleteGroupRequest{Uid: made.GetUid()}))
		_, err := groups.GetGroup(ctx, &iam.GetGroupRequest{Uid: made.GetUid()})
		refused(err, codes.NotFound)
		return nil
	})
	check("a role: create, get, replace, list, delete", func() error {
		roles := api.RolesService()
		name := unique("role")
		caps := []capabilities.Capability{capabilities.Capability_CAP_IAM_GROUPS_LIST, capabilities.Capability_CAP_REPO_LIST}
		made := must(roles.CreateRole(ctx, &iam.CreateRoleRequest{Parent: w.org, Role: &iam.Role{Name: name, Description: "one", Capabilities: caps}}))
		same(len(made.GetCapabilities()), 2, "number of capabilities")
		same(must(roles.GetRole(ctx, &iam.GetRoleRequest{Uid: made.GetUid()})), made, "the read")
		changed := must(roles.UpdateRole(ctx, &iam.UpdateRoleRequest{
			Role: &iam.Role{Uid: made.GetUid(), Name: name, Capabilities: caps[:1]}, UpdateMask: mask("*"),
		}))
		same([]any{changed.GetDescription(), changed.GetCapabilities()}, []any{"", caps[:1]}, "description and capabilities")
		same(len(must(api.ListRolesAll(ctx, &iam.ListRolesRequest{Name: name}))), 1, "number of roles of that name")
		must(roles.DeleteRole(ctx, &iam.DeleteRoleRequest{Uid: made.GetUid()}))
		return nil
	})
	check("an unknown capability number is refused", func() error {
		_, err := api.RolesService().CreateRole(ctx, &iam.CreateRoleRequest{Parent: w.org, Role: &iam.Role{
			Name: unique("role"), Capabilities: []capabilities.Capability{999999},
		}})
		refused(err, codes.InvalidArgument)
		return nil
	})
	check("an identity: create, get, update by the default mask, list by kind, delete", func() error {
		identities := api.IdentitiesService()
		made := must(identities.CreateIdentity(ctx, &iam.CreateIdentityRequest{Parent: w.org, Identity: claimMatch(unique("identity"), "https://issuer.example.com", "one")}))
		same(must(identities.GetIdentity(ctx, &iam.GetIdentityRequest{Uid: made.GetUid()})), made, "the read")
		// Without a mask the fields that are set are the mask.
		changed := must(identities.UpdateIdentity(ctx, &iam.UpdateIdentityRequest{Identity: &iam.Identity{Uid: made.GetUid(), Description: "two"}}))
		same([]string{changed.GetName(), changed.GetDescription(), changed.GetClaimMatch().GetSubject()}, []string{made.GetName(), "two", "one"}, "name, description, subject")
		listed := must(api.ListIdentitiesAll(ctx, &iam.ListIdentitiesRequest{Name: made.GetName(), RelationshipType: iam.RelationshipType_RELATIONSHIP_TYPE_CLAIM_MATCH}))
		same(len(listed), 1, "number of identities of that name")
		must(identities.DeleteIdentity(ctx, &iam.DeleteIdentityRequest{Uid: made.GetUid()}))
		return nil
	})
	check("an identity becomes another kind by *", func() error {
		identities := api.IdentitiesService()
		made := must(identities.CreateIdentity(ctx, &iam.CreateIdentityRequest{Parent: w.org, Identity: claimMatch(unique("turn"), "https://issuer.example.com", "one")}))
		changed := must(identities.UpdateIdentity(ctx, &iam.UpdateIdentityRequest{
			Identity: &iam.Identity{Uid: made.GetUid(), Name: made.GetName(), Relationship: &iam.Identity_ServicePrincipal{
				ServicePrincipal: iam.ServicePrincipal_SERVICE_PRINCIPAL_INGESTER,
			}},
			UpdateMask: mask("*"),
		}))
		same(changed.GetServicePrincipal(), iam.ServicePrincipal_SERVICE_PRINCIPAL_INGESTER, "service principal")
		that(changed.GetClaimMatch() == nil, "it still has a claim match")
		return nil
	})
	check("a role binding: create, get, change, delete twice", func() error {
		bindings := api.RoleBindingsService()
		who := must(api.IdentitiesService().CreateIdentity(ctx, &iam.CreateIdentityRequest{Parent: w.org, Identity: claimMatch(unique("bound"), "https://issuer.example.com", "bound")}))
		made := must(bindings.CreateRoleBinding(ctx, &iam.CreateRoleBindingRequest{Parent: w.org, RoleBinding: &iam.RoleBinding{IdentityUid: who.GetUid(), RoleUid: w.viewer}}))
		read := must(bindings.GetRoleBinding(ctx, &iam.GetRoleBindingRequest{Uid: made.GetUid()}))
		same([]string{read.GetIdentity().GetUid(), read.GetIdentity().GetSubject(), read.GetGroup().GetUid(), read.GetRole().GetName()},
			[]string{who.GetUid(), "bound", w.org, "viewer"}, "identity, its subject, group, role")
		changed := must(bindings.UpdateRoleBinding(ctx, &iam.UpdateRoleBindingRequest{
			RoleBinding: &iam.RoleBinding{Uid: made.GetUid(), IdentityUid: who.GetUid(), RoleUid: w.owner}, UpdateMask: mask("*"),
		}))
		same(changed.GetRole().GetUid(), w.owner, "role")
		for range 2 {
			must(bindings.DeleteRoleBinding(ctx, &iam.DeleteRoleBindingRequest{Uid: made.GetUid()}))
		}
		return nil
	})
	check("role bindings in a batch, in order, at most 25", func() error {
		group := w.group(ctx, w.org, "batch")
		batch := func(n int) (*iam.BatchCreateRoleBindingsResponse, []string, error) {
			var uids []string
			request := &iam.BatchCreateRoleBindingsRequest{Parent: group, RoleUid: w.viewer}
			for range n {
				who := must(api.IdentitiesService().CreateIdentity(ctx, &iam.CreateIdentityRequest{Parent: w.org, Identity: claimMatch(unique("batch"), "https://issuer.example.com", "batch")}))
				uids = append(uids, who.GetUid())
				request.Requests = append(request.Requests, &iam.CreateRoleBindingRequest{Parent: group, RoleBinding: &iam.RoleBinding{IdentityUid: who.GetUid()}})
			}
			answer, err := api.RoleBindingsService().BatchCreateRoleBindings(ctx, request)
			return answer, uids, err
		}
		answer, uids, err := batch(25)
		if err != nil {
			return err
		}
		for i, made := range answer.GetRoleBindings() {
			got := made.GetIdentityUid()
			if got == "" {
				got = made.GetIdentity().GetUid()
			}
			same(got, uids[i], "identity in the answer")
		}
		same(len(must(api.ListRoleBindingsAll(ctx, &iam.ListRoleBindingsRequest{Group: group}))), 25, "number of bindings")
		_, _, err = batch(26)
		refused(err, codes.InvalidArgument)
		return nil
	})
}

func mask(paths ...string) *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: paths} }
