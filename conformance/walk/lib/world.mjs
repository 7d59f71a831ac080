// What every suite works in: one organization with an owner and a viewer, and
// another one whose member is a stranger to the first. The operator makes it.
import { that } from './check.mjs';
import { unique } from './names.mjs';

export async function makeWorld({ operator, idp, base }) {
  const must = async (answer) => {
    const a = await answer;
    that(a.status === 200, `status of ${a.method} is ${a.status}, expected 200`);
    return a.json;
  };
  const roles = {};
  for (const name of ['owner', 'editor', 'viewer', 'registry.pull']) {
    const { roles: found } = await must(operator.get('/iam/v2/roles', { name }));
    that(found?.length === 1, `setting up: ${found?.length} roles are named ${name}`);
    roles[name] = found[0].uid;
  }
  const organization = async (name) => (await must(operator.post('/iam/v2/groups', { name: unique(name), description: 'made by the walk' }))).uid;
  const identity = async (group, client) => (await must(operator.post(`/iam/v2/identities/${group}`, {
    name: unique(client), description: `a workload of ${client}`, claimMatch: { issuer: idp.issuer, subject: client },
  }))).uid;
  const bind = async (group, identityUid, roleUid) => (await must(operator.post(`/iam/v2/roleBindings/${group}`, { identityUid, roleUid }))).uid;

  const org = await organization('walk');
  const elsewhere = await organization('elsewhere');
  const ids = {
    owner: await identity(org, 'walk-owner'),
    viewer: await identity(org, 'walk-viewer'),
    unbound: await identity(org, 'walk-unbound'),
    stranger: await identity(elsewhere, 'walk-stranger'),
    twin: await identity(org, 'walk-twin'),
    twin2: await identity(elsewhere, 'walk-twin'),
  };
  await bind(org, ids.owner, roles.owner);
  await bind(org, ids.viewer, roles.viewer);
  await bind(elsewhere, ids.stranger, roles.owner);

  // A caller's token: the workload's token, exchanged.
  const login = async (name, params = {}) => {
    const upstream = await idp.token(`walk-${name}`);
    const { token } = await must(operator.as(upstream).get('/sts/exchange', { aud: base, identity: ids[name], ...params }));
    return token;
  };
  // A caller of its own, for checks that bind roles to it.
  const fresh = async () => {
    const uid = await identity(org, 'walk-unbound');
    return { uid, api: operator.as(await login('unbound', { identity: uid })) };
  };
  const world = { base, idp, operator, org, elsewhere, ids, roles, login, fresh, must, bind };
  world.nobody = operator.anonymous();
  for (const name of ['owner', 'viewer', 'unbound', 'stranger']) world[name] = operator.as(await login(name));

  const group = async (parent, name) => (await must(world.owner.post(`/iam/v2/groups/${parent}`, { name: unique(name) }))).uid;
  const repo = async (parent, body = {}) => must(world.owner.post(`/registry/v2/repos/${parent}`, { name: unique('repo'), ...body }));
  return Object.assign(world, { group, repo });
}
