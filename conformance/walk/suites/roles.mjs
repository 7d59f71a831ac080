// Roles in v2.
import { check, has, same, that } from '../lib/check.mjs';
import { badFields, blocked, forbidden, refused } from '../lib/status.mjs';
import { unique } from '../lib/names.mjs';

export const title = 'Roles';
const domain = 'iam.chainguard.dev';

export async function run(w) {
  await check('built-in roles: visible to everyone, once per name, described', async () => {
    for (const api of [w.owner, w.viewer, w.stranger, w.unbound]) {
      const { roles } = (await api.get('/iam/v2/roles', { name: 'viewer' })).json;
      same(roles.map((r) => r.uid), ['63921b2c44617e3f2603851537be0123af4a57d7'], 'uids named viewer');
      that(roles[0].description.length > 0, 'no description');
      that(roles[0].capabilities.includes('CAP_IAM_GROUPS_LIST'), 'viewer lacks CAP_IAM_GROUPS_LIST');
    }
  });
  await check('built-in roles cannot be changed or deleted', async () => {
    for (const api of [w.owner, w.stranger]) {
      that((await api.delete(`/iam/v2/roles/${w.roles.viewer}`)).status >= 400, 'the delete succeeded');
      that((await api.patch(`/iam/v2/roles/${w.roles.viewer}`, { description: 'x' }, { updateMask: 'description' })).status >= 400, 'the update succeeded');
    }
    same((await w.owner.get(`/iam/v2/roles/${w.roles.viewer}`)).status, 200, 'status of the next read');
  });
  await check('a custom role: create, get, replace, list, delete', async () => {
    const name = unique('custom');
    const made = await w.must(w.owner.post(`/iam/v2/roles/${w.org}`, { name, description: 'd', capabilities: ['CAP_IAM_GROUPS_LIST', 'CAP_REPO_LIST'] }));
    has(made, { name, description: 'd' });
    same([...made.capabilities].sort(), ['CAP_IAM_GROUPS_LIST', 'CAP_REPO_LIST'], 'capabilities');
    same((await w.viewer.get(`/iam/v2/roles/${made.uid}`)).json, made, 'the next read');
    const after = await w.must(w.owner.patch(`/iam/v2/roles/${made.uid}`, { name, capabilities: ['CAP_IAM_GROUPS_LIST'] }, { updateMask: '*' }));
    has(after, { uid: made.uid, name, description: '', capabilities: ['CAP_IAM_GROUPS_LIST'], createTime: made.createTime });
    same((await w.owner.get('/iam/v2/roles', { 'uidp.children_of': w.org, name })).json.roles, [after], 'list');
    same((await w.owner.get('/iam/v1/roles', { id: made.uid })).json.items[0].capabilities, ['groups.list'], 'capabilities in v1');
    const gone = await w.owner.delete(`/iam/v2/roles/${made.uid}`);
    same([gone.status, gone.text], [200, ''], 'status and body of DELETE');
  });
  await check('a role needs a capability, a free name, and no built-in\'s name', async () => {
    badFields(await w.owner.post(`/iam/v2/roles/${w.org}`, { name: unique('empty') }), domain, 'capabilities');
    const name = unique('taken');
    const body = { name, capabilities: ['CAP_IAM_GROUPS_LIST'] };
    await w.must(w.owner.post(`/iam/v2/roles/${w.org}`, body));
    refused(await w.owner.post(`/iam/v2/roles/${w.org}`, body), 409, 6);
    that((await w.owner.post(`/iam/v2/roles/${w.org}`, { ...body, name: 'viewer' })).status >= 400, 'a custom role is named viewer');
  });
  await check('an unknown or internal capability is refused', async () => {
    same((await w.owner.post(`/iam/v2/roles/${w.org}`, { name: unique('x'), capabilities: ['CAP_LEVITATE'] })).status, 400, 'status of an unknown one');
    that((await w.owner.post(`/iam/v2/roles/${w.org}`, { name: unique('x'), capabilities: ['CAP_INTERNAL'] })).status >= 400, 'an internal one was taken');
  });
  await check('a role in use is not deleted, and says why', async () => {
    const role = await w.must(w.owner.post(`/iam/v2/roles/${w.org}`, { name: unique('used'), capabilities: ['CAP_IAM_GROUPS_LIST'] }));
    const binding = await w.must(w.owner.post(`/iam/v2/roleBindings/${w.org}`, { identityUid: (await w.fresh()).uid, roleUid: role.uid }));
    blocked(await w.owner.delete(`/iam/v2/roles/${role.uid}`), domain);
    same((await w.owner.delete(`/iam/v2/roleBindings/${binding.uid}`)).status, 200, 'status of deleting the binding');
    same((await w.owner.delete(`/iam/v2/roles/${role.uid}`)).status, 200, 'status of deleting the role');
  });
  await check('a widened role widens its holders at once', async () => {
    const group = await w.group(w.org, 'widened');
    const role = await w.must(w.owner.post(`/iam/v2/roles/${group}`, { name: unique('wide'), capabilities: ['CAP_IAM_GROUPS_LIST'] }));
    const holder = await w.fresh();
    await w.must(w.owner.post(`/iam/v2/roleBindings/${group}`, { identityUid: holder.uid, roleUid: role.uid }));
    same((await holder.api.get(`/iam/v2/groups/${group}`)).status, 200, 'status of a group read');
    forbidden(await holder.api.post(`/registry/v2/repos/${group}`, { name: unique('x') }), 'registry.chainguard.dev');
    await w.must(w.owner.patch(`/iam/v2/roles/${role.uid}`, { capabilities: ['CAP_IAM_GROUPS_LIST', 'CAP_REPO_CREATE'] }, { updateMask: 'capabilities' }));
    same((await holder.api.post(`/registry/v2/repos/${group}`, { name: unique('wide') })).status, 200, 'status of a repository made');
  });
  await check('viewers and strangers make no roles', async () => {
    for (const api of [w.viewer, w.stranger]) forbidden(await api.post(`/iam/v2/roles/${w.org}`, { name: unique('x'), capabilities: ['CAP_IAM_GROUPS_LIST'] }), domain);
  });
}
