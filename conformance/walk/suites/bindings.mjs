// Role bindings in v2.
import { check, has, same, that } from '../lib/check.mjs';
import { badFields, forbidden, refused, v2error } from '../lib/status.mjs';
import { absentIn, absentRoot } from '../lib/names.mjs';

export const title = 'Role bindings';
const domain = 'iam.chainguard.dev';

export async function run(w) {
  const group = await w.group(w.org, 'bindings');
  const path = `/iam/v2/roleBindings/${group}`;
  const subjects = [];
  for (let i = 0; i < 26; i += 1) subjects.push(await w.must(w.owner.post(`/iam/v2/identities/${w.org}`, { name: `bound ${i}`, claimMatch: { issuer: w.idp.issuer, subject: `bound-${i}` } })));

  await check('create, get: identity, group and role are filled in', async () => {
    const made = await w.must(w.owner.post(path, { identityUid: subjects[0].uid, roleUid: w.roles.viewer }));
    that(made.uid.startsWith(`${group}/`), `uid ${made.uid} is not below ${group}`);
    const read = (await w.owner.get(`/iam/v2/roleBindings/${made.uid}`)).json;
    has(read.identity, { uid: subjects[0].uid, name: 'bound 0', issuer: w.idp.issuer, subject: 'bound-0' }, 'identity');
    same([read.group.uid, read.role.uid, read.role.name], [group, w.roles.viewer, 'viewer'], 'group.uid, role.uid, role.name');
    same(read.createTime, made.createTime, 'createTime');
    that(!('updateTime' in read), 'a binding has an updateTime');
  });
  await check('it takes effect at once, and ends at once', async () => {
    const inside = await w.group(group, 'effect');
    const holder = await w.fresh();
    forbidden(await holder.api.get(`/iam/v2/groups/${inside}`), domain);
    const made = await w.must(w.owner.post(path, { identityUid: holder.uid, roleUid: w.roles.viewer }));
    same((await holder.api.get(`/iam/v2/groups/${inside}`)).status, 200, 'status while bound');
    const gone = await w.owner.delete(`/iam/v2/roleBindings/${made.uid}`);
    same([gone.status, gone.text], [200, ''], 'status and body of DELETE');
    forbidden(await holder.api.get(`/iam/v2/groups/${inside}`), domain);
    same((await w.owner.delete(`/iam/v2/roleBindings/${made.uid}`)).status, 200, 'status of a second DELETE');
  });
  await check('PATCH changes the role', async () => {
    const made = await w.must(w.owner.post(path, { identityUid: subjects[1].uid, roleUid: w.roles.viewer }));
    const after = await w.must(w.owner.patch(`/iam/v2/roleBindings/${made.uid}`, { identityUid: subjects[1].uid, roleUid: w.roles.editor }, { updateMask: '*' }));
    same([after.uid, after.role.uid], [made.uid, w.roles.editor], 'uid and role');
  });
  await check('the same identity, role and group twice is 409', async () => {
    const body = { identityUid: subjects[2].uid, roleUid: w.roles.viewer };
    await w.must(w.owner.post(path, body));
    refused(await w.owner.post(path, body), 409, 6);
  });
  await check('list filters by identity, role and group', async () => {
    const all = async (query) => (await w.owner.get('/iam/v2/roleBindings', query)).json.roleBindings;
    const mine = await all({ identity: subjects[2].uid });
    same(mine.map((b) => b.identity.uid), [subjects[2].uid], 'by identity');
    const editors = await all({ 'uidp.children_of': group, role: w.roles.editor });
    same(editors.map((b) => b.role.uid), [w.roles.editor], 'by role');
    that((await all({ group })).every((b) => b.group.uid === group), 'by group');
  });
  await check('batch: all in order', async () => {
    const batch = subjects.slice(3, 13);
    const answer = await w.must(w.owner.post('/iam/v2/roleBindings:batchCreate', {
      parent: group, roleUid: w.roles.viewer, requests: batch.map((s) => ({ parent: group, roleBinding: { identityUid: s.uid } })),
    }));
    same(answer.roleBindings.map((b) => b.identity?.uid ?? b.identityUid), batch.map((s) => s.uid), 'identities');
  });
  await check('batch: at most 25, and all or nothing', async () => {
    const make = (uids) => w.owner.post('/iam/v2/roleBindings:batchCreate', {
      parent: group, requests: uids.map((identityUid) => ({ parent: group, roleBinding: { identityUid, roleUid: w.roles['registry.pull'] } })),
    });
    refused(await make(subjects.map((s) => s.uid)), 400, 3);
    that((await make([subjects[14].uid, absentIn(w.org)])).status >= 400, 'a batch with a missing identity succeeded');
    same((await w.owner.get('/iam/v2/roleBindings', { identity: subjects[14].uid })).json.roleBindings, [], 'bindings after the refused batch');
    same((await make(subjects.slice(0, 25).map((s) => s.uid))).status, 200, 'status of a batch of 25');
  });
  await check('a missing identity or role is refused, both missing members are named', async () => {
    for (const body of [{ identityUid: absentIn(w.org), roleUid: w.roles.viewer }, { identityUid: subjects[15].uid, roleUid: absentRoot() }]) {
      const answer = await w.owner.post(path, body);
      that([400, 404].includes(answer.status), `status ${answer.status}`);
      v2error(answer, answer.status, answer.json.code);
    }
    badFields(await w.owner.post(path, {}), domain, 'identity_uid', 'role_uid');
  });
  await check('nobody grants more than they hold', async () => {
    const role = await w.must(w.owner.post(`/iam/v2/roles/${group}`, { name: 'binder', capabilities: ['CAP_IAM_GROUPS_LIST', 'CAP_IAM_ROLE_BINDINGS_CREATE', 'CAP_IAM_ROLES_LIST'] }));
    const binder = await w.fresh();
    await w.must(w.owner.post(path, { identityUid: binder.uid, roleUid: role.uid }));
    forbidden(await binder.api.post(path, { identityUid: binder.uid, roleUid: w.roles.owner }), domain);
    forbidden(await binder.api.post(`/iam/v2/roleBindings/${w.org}`, { identityUid: binder.uid, roleUid: role.uid }), domain);
    same((await binder.api.post(path, { identityUid: subjects[16].uid, roleUid: role.uid })).status, 200, 'status of granting what it holds');
  });
  await check('an identity of another organization is not bound here', async () =>
    that((await w.owner.post(path, { identityUid: w.ids.stranger, roleUid: w.roles.viewer })).status >= 400, 'it was bound'));
}
