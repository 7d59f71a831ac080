package main

import (
	"context"

	"chainguard.dev/sdk/proto/capabilities"
	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	registry "chainguard.dev/sdk/proto/chainguard/platform/registry/v2"
	eventsv1 "chainguard.dev/sdk/proto/platform/events/v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// changer makes changes below the group and notes the kinds of their events, in order.
//
// What needs people or an image is in the browser suite, with the same receiver.
type changer struct {
	ctx    context.Context
	w      *world
	hooks  eventsv1.SubscriptionsClient
	parent string
	kinds  []string
}

func (c *changer) notes(kind string) { c.kinds = append(c.kinds, kind) }

// changes makes one change of each kind and returns the kinds.
func changes(ctx context.Context, w *world, hooks eventsv1.SubscriptionsClient, parent string) []string {
	c := &changer{ctx: ctx, w: w, hooks: hooks, parent: parent}
	c.groups()
	c.bindings()
	c.accounts()
	provider := c.provider()
	c.scim(provider)
	c.mappings(provider)
	must(w.v2.IAM().IdentityProvidersService().DeleteIdentityProvider(ctx, &iam.DeleteIdentityProviderRequest{Uid: provider}))
	c.notes("iam.identity_providers.deleted")
	c.invites()
	c.repos()
	c.subscriptions()
	return c.kinds
}

func (c *changer) groups() {
	groups := c.w.v2.IAM().GroupsService()
	group := must(groups.CreateGroup(c.ctx, &iam.CreateGroupRequest{Parent: c.parent, Group: &iam.Group{Name: unique("team")}}))
	c.notes("iam.group.created")
	must(groups.UpdateGroup(c.ctx, &iam.UpdateGroupRequest{
		Group: &iam.Group{Uid: group.GetUid(), Description: "words"}, UpdateMask: mask("description"),
	}))
	c.notes("iam.group.updated")
	must(groups.DeleteGroup(c.ctx, &iam.DeleteGroupRequest{Uid: group.GetUid()}))
	c.notes("iam.group.deleted")
}

// bindings changes roles and identities too: that is what bindings are of.
func (c *changer) bindings() {
	services := c.w.v2.IAM()
	role := must(services.RolesService().CreateRole(c.ctx, &iam.CreateRoleRequest{
		Parent: c.parent, Role: &iam.Role{Name: unique("role"), Capabilities: []capabilities.Capability{capabilities.Capability_CAP_REPO_LIST}},
	}))
	c.notes("iam.roles.created")
	must(services.RolesService().UpdateRole(c.ctx, &iam.UpdateRoleRequest{
		Role: &iam.Role{Uid: role.GetUid(), Description: "words"}, UpdateMask: mask("description"),
	}))
	c.notes("iam.roles.updated")
	machine := must(services.IdentitiesService().CreateIdentity(c.ctx, &iam.CreateIdentityRequest{
		Parent: c.parent, Identity: claimMatch(unique("machine"), "https://issuer.example.com", "somebody"),
	}))
	c.notes("iam.identity.created")
	must(services.IdentitiesService().UpdateIdentity(c.ctx, &iam.UpdateIdentityRequest{
		Identity: &iam.Identity{Uid: machine.GetUid(), Description: "words"}, UpdateMask: mask("description"),
	}))
	c.notes("iam.identity.updated")
	c.bind(machine.GetUid(), role.GetUid())
	must(services.RolesService().DeleteRole(c.ctx, &iam.DeleteRoleRequest{Uid: role.GetUid()}))
	c.notes("iam.roles.deleted")
	must(services.IdentitiesService().DeleteIdentity(c.ctx, &iam.DeleteIdentityRequest{Uid: machine.GetUid()}))
	c.notes("iam.identity.deleted")
}

func (c *changer) bind(identity, role string) {
	bindings := c.w.v2.IAM().RoleBindingsService()
	request := &iam.CreateRoleBindingRequest{
		Parent: c.parent, RoleBinding: &iam.RoleBinding{IdentityUid: identity, RoleUid: role},
	}
	binding := must(bindings.CreateRoleBinding(c.ctx, request))
	c.notes("iam.rolebindings.created")
	must(bindings.UpdateRoleBinding(c.ctx, &iam.UpdateRoleBindingRequest{
		RoleBinding: &iam.RoleBinding{Uid: binding.GetUid(), RoleUid: c.w.viewer}, UpdateMask: mask("role_uid"),
	}))
	c.notes("iam.rolebindings.updated")
	must(bindings.DeleteRoleBinding(c.ctx, &iam.DeleteRoleBindingRequest{Uid: binding.GetUid()}))
	c.notes("iam.rolebindings.deleted")
	batch := must(bindings.BatchCreateRoleBindings(c.ctx, &iam.BatchCreateRoleBindingsRequest{
		Parent: c.parent, Requests: []*iam.CreateRoleBindingRequest{request},
	}))
	c.notes("iam.rolebindings.created.batch")
	for _, one := range batch.GetRoleBindings() {
		must(bindings.DeleteRoleBinding(c.ctx, &iam.DeleteRoleBindingRequest{Uid: one.GetUid()}))
		c.notes("iam.rolebindings.deleted")
	}
}

func (c *changer) accounts() {
	accounts := c.w.v2.IAM().AccountAssociationsService()
	must(accounts.CreateAccountAssociation(c.ctx, &iam.CreateAccountAssociationRequest{
		Parent: c.parent, AccountAssociation: &iam.AccountAssociation{
			Name:   unique("accounts"),
			Amazon: &iam.AccountAssociation_Amazon{Account: "123456789012"},
		},
	}))
	c.notes("iam.account_associations.created")
	must(accounts.UpdateAccountAssociation(c.ctx, &iam.UpdateAccountAssociationRequest{
		AccountAssociation: &iam.AccountAssociation{Uid: c.parent, Description: "words"}, UpdateMask: mask("description"),
	}))
	c.notes("iam.account_associations.updated")
	must(accounts.DeleteAccountAssociation(c.ctx, &iam.DeleteAccountAssociationRequest{Uid: c.parent}))
	c.notes("iam.account_associations.deleted")
}

func (c *changer) provider() string {
	providers := c.w.v2.IAM().IdentityProvidersService()
	provider := must(providers.CreateIdentityProvider(c.ctx, &iam.CreateIdentityProviderRequest{
		Parent: c.parent, IdentityProvider: &iam.IdentityProvider{
			Name:        unique("provider"),
			DefaultRole: c.w.viewer,
			Configuration: &iam.IdentityProvider_Oidc{Oidc: &iam.IdentityProvider_OIDC{
				Issuer: "https://login.example.com", ClientId: "client", ClientSecret: "hush",
			}},
		},
	}))
	c.notes("iam.identity_providers.created")
	must(providers.UpdateIdentityProvider(c.ctx, &iam.UpdateIdentityProviderRequest{
		IdentityProvider: &iam.IdentityProvider{Uid: provider.GetUid(), Description: "words"}, UpdateMask: mask("description"),
	}))
	c.notes("iam.identity_providers.updated")
	return provider.GetUid()
}

// scim needs two owners of the group.
func (c *changer) scim(provider string) {
	providers := c.w.v2.IAM().IdentityProvidersService()
	first := must(providers.GenerateScimToken(c.ctx, &iam.GenerateScimTokenRequest{IdentityProviderUid: provider}))
	c.notes("iam.identity_providers.scim_token.generated")
	second := must(providers.RegenerateScimToken(c.ctx, &iam.RegenerateScimTokenRequest{
		IdentityProviderUid: provider, Etag: first.GetEtag(), Overlap: durationpb.New(60e9),
	}))
	c.notes("iam.identity_providers.scim_token.regenerated")
	must(providers.SetScimEnabled(c.ctx, &iam.SetScimEnabledRequest{
		IdentityProviderUid: provider, Etag: second.GetEtag(), Enabled: true,
	}))
	c.notes("iam.identity_providers.scim_enabled.updated")
	must(providers.RevokeScimToken(c.ctx, &iam.RevokeScimTokenRequest{IdentityProviderUid: provider}))
	c.notes("iam.identity_providers.scim_token.revoked")
}

func (c *changer) mappings(provider string) {
	mappings := c.w.v2.IAM().ExternalGroupRoleMappingsService()
	create := func() string {
		made := must(mappings.CreateExternalGroupRoleMapping(c.ctx, &iam.CreateExternalGroupRoleMappingRequest{
			Parent: provider, ExternalGroupRoleMapping: &iam.ExternalGroupRoleMapping{
				ExternalGroupId: unique("admins"), RoleUid: c.w.viewer,
			},
		}))
		c.notes("iam.external_group_role_mappings.created")
		return made.GetUid()
	}
	one, other := create(), create()
	must(mappings.DeleteExternalGroupRoleMapping(c.ctx, &iam.DeleteExternalGroupRoleMappingRequest{Uid: one}))
	c.notes("iam.external_group_role_mappings.deleted")
	must(mappings.BatchDeleteExternalGroupRoleMappings(c.ctx, &iam.BatchDeleteExternalGroupRoleMappingsRequest{
		Parent: provider, Names: []string{other},
	}))
	c.notes("iam.external_group_role_mappings.deleted.batch")
}

func (c *changer) invites() {
	invites := c.w.v2.IAM().GroupInvitesService()
	invite := must(invites.CreateGroupInvite(c.ctx, &iam.CreateGroupInviteRequest{
		Parent: c.parent, GroupInvite: &iam.GroupInvite{RoleUid: c.w.viewer, Ttl: durationpb.New(3600e9)},
	}))
	c.notes("iam.group_invite.created")
	must(invites.DeleteGroupInvite(c.ctx, &iam.DeleteGroupInviteRequest{Uid: invite.GetUid()}))
	c.notes("iam.group_invite.deleted")
}

func (c *changer) repos() {
	repos := c.w.v2.Registry().ReposService()
	repo := must(repos.CreateRepo(c.ctx, &registry.CreateRepoRequest{Parent: c.parent, Repo: &registry.Repo{Name: unique("repo")}}))
	c.notes("platform.registry.repo.created")
	must(repos.UpdateRepo(c.ctx, &registry.UpdateRepoRequest{
		Repo: &registry.Repo{Uid: repo.GetUid(), Description: "words"}, UpdateMask: mask("description"),
	}))
	c.notes("platform.registry.repo.updated")
	must(repos.DeleteRepo(c.ctx, &registry.DeleteRepoRequest{Uid: repo.GetUid()}))
	c.notes("platform.registry.repo.deleted")
}

func (c *changer) subscriptions() {
	hook := must(c.hooks.Create(c.ctx, &eventsv1.CreateSubscriptionRequest{
		ParentId: c.parent, Subscription: &eventsv1.Subscription{Sink: "https://localhost/callback"},
	}))
	c.notes("events.subscription.created")
	must(c.hooks.Delete(c.ctx, &eventsv1.DeleteSubscriptionRequest{Id: hook.GetId()}))
	c.notes("events.subscription.deleted")
}
