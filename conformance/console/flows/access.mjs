// Identities, roles, role bindings, invitations and identity providers.
const bindingsOf = async (w, identity) => {
  const { roleBindings } = await w.get(`/iam/v2/roleBindings?identity=${identity}`);
  return roleBindings.map((one) => [one.group.uid === w.ids.org ? 'org' : one.group.uid, one.role.name]);
};
const bound = async (w, name) => {
  const identity = await w.identity(name);
  const body = { identityUid: identity, roleUid: w.ids['role viewer'] };
  w.ids[`binding of ${name}`] = (await w.post(`/iam/v2/roleBindings/${w.ids.org}`, body)).uid;
  w.ids[name] = identity;
};
const role = async (w, name) => {
  const body = { name, description: 'before', capabilities: ['CAP_REPO_LIST'] };
  w.ids[name] = (await w.post(`/iam/v2/roles/${w.ids.org}`, body)).uid;
};
const provider = async (w, name) => {
  const oidc = { issuer: 'https://issuer.example', clientId: 'client', clientSecret: 'x' };
  w.ids[name] = (await w.post(`/iam/v2/identityProviders/${w.ids.org}`, { name, defaultRole: w.ids['role viewer'], oidc })).uid;
};
const scim = async (w, name) => (await w.get(`/iam/v2/identityProviders/${w.ids[name]}`)).scim ?? {};

const identities = [
  {
    name: 'an identity is created',
    way: ['Identities', 'Create an identity'],
    fill: () => ({
      'identity.name': 'release', 'identity.description': 'Releases',
      'identity.claim_match.issuer': 'https://issuer.example', 'identity.claim_match.subject': 'repo:acme/site:ref:refs/heads/main',
      'identity.claim_match.claims': '{"job": "release"}',
    }),
    proof: async (w) => {
      const { identities: found } = await w.get(`/iam/v2/identities?uidp.childrenOf=${w.ids.org}&name=release`);
      return [found.map((one) => [one.claimMatch.subject, one.claimMatch.claims]), [['repo:acme/site:ref:refs/heads/main', { job: 'release' }]]];
    },
  },
  {
    name: 'an identity trusts another subject',
    given: async (w) => { w.ids.moved = await w.identity('moved'); },
    way: ['Identities', 'moved', 'Edit'],
    fill: () => ({ 'identity.description': 'since the move', 'identity.claim_match.subject': 'another subject' }),
    proof: async (w) => {
      const { name, description, claimMatch } = await w.get(`/iam/v2/identities/${w.ids.moved}`);
      return [[name, description, claimMatch.issuer, claimMatch.subject], ['moved', 'since the move', 'https://issuer.example', 'another subject']];
    },
  },
  {
    name: 'an identity is deleted',
    given: async (w) => { w.ids.leaver = await w.identity('leaver'); },
    way: ['Identities', 'leaver', 'Delete'],
    confirm: () => 'leaver',
    proof: async (w) => [await w.status(`/iam/v2/identities/${w.ids.leaver}`), 404],
  },
  {
    name: 'an identity gets a role',
    given: async (w) => { w.ids.joiner = await w.identity('joiner'); },
    way: ['Identities', 'joiner', 'Give it a role'],
    fill: (w) => ({ parent: w.ids.org, 'role_binding.role_uid': w.ids['role editor'] }),
    preview: true,
    proof: async (w) => [await bindingsOf(w, w.ids.joiner), [['org', 'editor']]],
  },
];

const bindings = [
  {
    name: 'a role binding is added',
    given: async (w) => { w.ids.puller = await w.identity('puller'); },
    way: ['Role bindings', 'Add a role binding'],
    fill: (w) => ({ 'role_binding.identity_uid': w.ids.puller, 'role_binding.role_uid': w.ids['role registry.pull'] }),
    proof: async (w) => [await bindingsOf(w, w.ids.puller), [['org', 'registry.pull']]],
  },
  {
    name: 'a role binding is removed',
    given: (w) => bound(w, 'unbound'),
    way: ['Role bindings', ['unbound', 'Remove']],
    confirm: (w) => w.ids['binding of unbound'],
    proof: async (w) => [await bindingsOf(w, w.ids.unbound), []],
  },
];

const roles = [
  {
    name: 'a role is created',
    way: ['Roles', 'Create a role'],
    fill: () => ({ 'role.name': 'tagger', 'role.description': 'Tags', 'role.capabilities': 'CAP_REPO_LIST\nCAP_TAG_LIST' }),
    proof: async (w) => {
      const { roles: found } = await w.get(`/iam/v2/roles?uidp.childrenOf=${w.ids.org}&name=tagger`);
      return [found.map((one) => one.capabilities), [['CAP_REPO_LIST', 'CAP_TAG_LIST']]];
    },
  },
  {
    name: 'a role allows more, after its preview',
    given: (w) => role(w, 'grower'),
    way: ['Roles', 'grower', 'Edit'],
    fill: () => ({ 'role.description': 'after', 'role.capabilities': 'CAP_REPO_LIST\nCAP_TAG_LIST' }),
    preview: true,
    proof: async (w) => {
      const { description, capabilities } = await w.get(`/iam/v2/roles/${w.ids.grower}`);
      return [[description, capabilities], ['after', ['CAP_REPO_LIST', 'CAP_TAG_LIST']]];
    },
  },
  {
    name: 'a role is deleted',
    given: (w) => role(w, 'retired'),
    way: ['Roles', 'retired', 'Delete'],
    confirm: () => 'retired',
    proof: async (w) => [await w.status(`/iam/v2/roles/${w.ids.retired}`), 404],
  },
];

const invites = async (w) => (await w.get(`/iam/v2/groupInvites?uidp.childrenOf=${w.ids.org}`)).groupInvites.map((one) => one.email ?? '');

const joining = [
  {
    name: 'an invitation is created',
    way: ['Invitations', 'Create an invitation'],
    fill: (w) => ({
      'group_invite.role_uid': w.ids['role viewer'], 'group_invite.email': 'ada@example.com', 'group_invite.ttl': '86400s',
      'group_invite.single_use': 'true',
    }),
    proof: async (w) => [(await invites(w)).includes('ada@example.com'), true],
  },
  {
    name: 'an invitation is revoked',
    given: async (w) => {
      const body = { roleUid: w.ids['role viewer'], ttl: '86400s', email: 'bob@example.com' };
      w.ids.invite = (await w.post(`/iam/v2/groupInvites/${w.ids.org}`, body)).uid;
    },
    way: ['Invitations', ['bob@example.com', 'Revoke']],
    confirm: (w) => w.ids.invite,
    proof: async (w) => [(await invites(w)).includes('bob@example.com'), false],
  },
  {
    name: 'an identity provider is created',
    way: ['Identity providers', 'Create an identity provider'],
    fill: (w) => ({
      'identity_provider.name': 'single sign-on', 'identity_provider.default_role': w.ids['role viewer'],
      'identity_provider.oidc.issuer': 'https://issuer.example', 'identity_provider.oidc.client_id': 'bowline',
      'identity_provider.oidc.client_secret': 'not for a line', 'identity_provider.oidc.groups_claim': 'groups',
    }),
    secret: true,
    proof: async (w) => {
      const { identityProviders: found } = await w.get(`/iam/v2/identityProviders?uidp.childrenOf=${w.ids.org}`);
      const made = found.find((one) => one.name === 'single sign-on');
      return [[made?.oidc.clientId, made?.oidc.groupsClaim], ['bowline', 'groups']];
    },
  },
  {
    name: 'an identity provider is changed',
    given: (w) => provider(w, 'changing'),
    way: ['Identity providers', ['changing', 'Edit']],
    fill: () => ({ 'identity_provider.description': 'of the company' }),
    proof: async (w) => {
      const { description, oidc } = await w.get(`/iam/v2/identityProviders/${w.ids.changing}`);
      return [[description, oidc.clientId], ['of the company', 'client']];
    },
  },
  {
    name: 'a directory gets a token',
    given: (w) => provider(w, 'directory'),
    way: ['Identity providers', 'directory', 'Create a token'],
    says: 'shown this once',
    proof: async (w) => [(await scim(w, 'directory')).credentialState, 'CREDENTIAL_STATE_LIVE'],
  },
  {
    name: 'a directory is switched on',
    given: async (w) => {
      // A directory needs owners that it cannot lock out.
      for (const name of ['first owner', 'second owner']) {
        const body = { identityUid: await w.identity(name), roleUid: w.ids['role owner'] };
        await w.post(`/iam/v2/roleBindings/${w.ids.org}`, body);
      }
      await provider(w, 'switched');
      w.ids.etag = (await w.post(`/iam/v2/identityProviders/${w.ids.switched}:generateScimToken`, {})).etag;
    },
    way: ['Identity providers', 'switched', 'Switch it on'],
    proof: async (w) => [(await scim(w, 'switched')).enabled, true],
  },
  {
    name: 'the token of a directory is revoked',
    given: async (w) => {
      await provider(w, 'revoked');
      await w.post(`/iam/v2/identityProviders/${w.ids.revoked}:generateScimToken`, {});
    },
    way: ['Identity providers', 'revoked', 'Revoke the token'],
    confirm: (w) => w.ids.revoked,
    proof: async (w) => [(await scim(w, 'revoked')).credentialState, 'CREDENTIAL_STATE_REVOKED'],
  },
  {
    name: 'a group of a provider is mapped to a role',
    given: (w) => provider(w, 'mapped'),
    way: ['Identity providers', ['mapped', 'Map a group']],
    fill: (w) => ({
      'external_group_role_mapping.external_group_id': 'engineers', 'external_group_role_mapping.role_uid': w.ids['role viewer'],
      'external_group_role_mapping.scope': w.ids.org,
    }),
    proof: async (w) => {
      const { externalGroupRoleMappings: found } = await w.get(`/iam/v2/externalGroupRoleMappings?identity_provider_uid=${w.ids.mapped}`);
      return [found.map((one) => [one.externalGroupId, one.roleUid]), [['engineers', w.ids['role viewer']]]];
    },
  },
  {
    name: 'a group of a provider loses its role',
    given: async (w) => {
      await provider(w, 'unmapping');
      const body = { externalGroupId: 'strangers', roleUid: w.ids['role viewer'], scope: w.ids.org };
      w.ids.mapping = (await w.post(`/iam/v2/externalGroupRoleMappings/${w.ids.unmapping}`, body)).uid;
    },
    way: ['Identity providers', ['strangers', 'Remove']],
    confirm: (w) => w.ids.mapping,
    proof: async (w) => [await w.status(`/iam/v2/externalGroupRoleMappings/${w.ids.mapping}`), 404],
  },
  {
    name: 'an identity provider is deleted',
    given: (w) => provider(w, 'leaving'),
    way: ['Identity providers', ['leaving', 'Delete']],
    confirm: () => 'leaving',
    proof: async (w) => [await w.status(`/iam/v2/identityProviders/${w.ids.leaving}`), 404],
  },
];

export const access = [...identities, ...bindings, ...roles, ...joining];
