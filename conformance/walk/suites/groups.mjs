// Groups in v2.
import { check, has, matches, same, that } from '../lib/check.mjs';
import { badFields, blocked, forbidden, refused } from '../lib/status.mjs';
import { isUidp, leaf, unique } from '../lib/names.mjs';

export const title = 'Groups';

export async function run(w) {
  await check('the operator creates an organization without a parent', async () => {
    for (const path of ['/iam/v2/groups', '/iam/v2/groups/']) {
      const made = await w.must(w.operator.post(path, { name: unique('root') }));
      matches(made.uid, /^[0-9a-f]{40}$/, 'uid');
    }
  });
  await check('a group below: uid, defaults, times', async () => {
    const made = await w.must(w.owner.post(`/iam/v2/groups/${w.org}`, { name: unique('child'), description: 'first\nsecond' }));
    that(isUidp(made.uid) && made.uid.startsWith(`${w.org}/`), `uid ${made.uid} is not below ${w.org}`);
    matches(leaf(made.uid), /^[0-9a-f]{16}$/, 'last segment');
    has(made, { description: 'first\nsecond', verified: false });
    same((await w.viewer.get(`/iam/v2/groups/${made.uid}`)).json, made, 'the next read');
  });
  await check('output-only members of a request are not taken over', async () => {
    const made = await w.must(w.owner.post(`/iam/v2/groups/${w.org}`, { name: unique('forged'), uid: w.elsewhere, createTime: '2001-01-01T00:00:00Z', verified: true, resourceLimits: { repositories: 5 } }));
    that(made.uid.startsWith(`${w.org}/`), `uid ${made.uid}`);
    that(!made.createTime.startsWith('2001'), 'createTime was taken over');
    same(made.verified, false, 'verified');
    that(made.resourceLimits?.repositories !== 5, 'resourceLimits was taken over');
  });
  await check('PATCH by the mask name,description,verified', async () => {
    const made = await w.must(w.owner.post(`/iam/v2/groups/${w.org}`, { name: unique('patched') }));
    const name = unique('renamed');
    const after = await w.must(w.owner.patch(`/iam/v2/groups/${made.uid}`, { name, description: 'd', verified: false }, { updateMask: 'name,description,verified' }));
    has(after, { uid: made.uid, name, description: 'd', verified: false, createTime: made.createTime });
  });
  await check('list by name, and the empty body of DELETE', async () => {
    const name = unique('found');
    const made = await w.must(w.owner.post(`/iam/v2/groups/${w.org}`, { name }));
    same((await w.owner.get('/iam/v2/groups', { name })).json.groups, [made], 'groups');
    const gone = await w.owner.delete(`/iam/v2/groups/${made.uid}`);
    same([gone.status, gone.text], [200, ''], 'status and body');
    same((await w.owner.get('/iam/v2/groups', { name })).json.groups, [], 'groups after DELETE');
  });
  await check('a group with children is not deleted, and says why', async () => {
    const parent = await w.group(w.org, 'parent');
    const child = await w.group(parent, 'child');
    blocked(await w.owner.delete(`/iam/v2/groups/${parent}`), 'iam.chainguard.dev', 'RESOURCE_NOT_EMPTY');
    const repo = await w.repo(child);
    blocked(await w.owner.delete(`/iam/v2/groups/${child}`), 'iam.chainguard.dev', 'RESOURCE_NOT_EMPTY');
    for (const path of [`/registry/v2/repos/${repo.uid}`, `/iam/v2/groups/${child}`, `/iam/v2/groups/${parent}`]) same((await w.owner.delete(path)).status, 200, `status of DELETE ${path}`);
  });
  await check('bindings of a group go with it', async () => {
    const group = await w.group(w.org, 'bound');
    const binding = await w.bind(group, (await w.fresh()).uid, w.roles.viewer);
    same((await w.owner.delete(`/iam/v2/groups/${group}`)).status, 200, 'status of DELETE');
    same((await w.operator.get(`/iam/v2/roleBindings/${binding}`)).status, 404, 'status of the binding');
  });
  await check('names: 3 to 63 of a-z 0-9 space . _ -, unique under a parent', async () => {
    const domain = 'iam.chainguard.dev';
    for (const name of ['', 'ab', 'a'.repeat(64), 'Upper', 'new\nline', ' lead', 'trail ', '0123456789abcdef', 'ä'.repeat(5)]) badFields(await w.owner.post(`/iam/v2/groups/${w.org}`, { name }), domain, 'name');
    const name = unique('unique');
    const made = await w.must(w.owner.post(`/iam/v2/groups/${w.org}`, { name }));
    refused(await w.owner.post(`/iam/v2/groups/${w.org}`, { name }), 409, 6);
    same((await w.owner.post(`/iam/v2/groups/${made.uid}`, { name })).status, 200, 'status of the same name one level down');
  });
  await check('viewers read, strangers do not, neither writes', async () => {
    const group = await w.group(w.org, 'guarded');
    same((await w.viewer.get(`/iam/v2/groups/${group}`)).status, 200, 'status for the viewer');
    forbidden(await w.stranger.get(`/iam/v2/groups/${group}`), 'iam.chainguard.dev');
    for (const api of [w.viewer, w.stranger, w.unbound]) {
      forbidden(await api.post(`/iam/v2/groups/${group}`, { name: unique('x') }), 'iam.chainguard.dev');
      forbidden(await api.patch(`/iam/v2/groups/${group}`, { description: 'x' }, { updateMask: 'description' }), 'iam.chainguard.dev');
      forbidden(await api.delete(`/iam/v2/groups/${group}`), 'iam.chainguard.dev');
    }
  });
}
