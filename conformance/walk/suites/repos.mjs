// Repositories in v2 (section 2).
import { check, has, same, that } from '../lib/check.mjs';
import { badFields, forbidden, refused } from '../lib/status.mjs';
import { isUidp, unique } from '../lib/names.mjs';

export const title = 'Repositories';
const domain = 'registry.chainguard.dev';

export async function run(w) {
  const group = await w.group(w.org, 'registry');
  const path = `/registry/v2/repos/${group}`;

  await check('create answers with the whole resource, 200', async () => {
    const name = unique('full');
    const body = { name, description: 'words', catalogTier: 'CATALOG_TIER_BASE', bundles: ['base', 'ai'], aliases: ['z/a:1', 'a/z:2'], activeTags: ['latest', '1'] };
    const answer = await w.owner.post(path, body);
    same(answer.status, 200, 'status');
    has(answer.json, body);
    that(isUidp(answer.json.uid) && answer.json.uid.startsWith(`${group}/`), `uid ${answer.json.uid}`);
    that(Math.abs(Date.parse(answer.json.createTime) - Date.now()) < 60e3, 'createTime is not now');
    same((await w.viewer.get(`/registry/v2/repos/${answer.json.uid}`)).json, answer.json, 'the next read');
  });
  await check('a name is taken once per group', async () => {
    const name = unique('once');
    const made = await w.repo(group, { name });
    const again = await w.owner.post(path, { name, description: 'other' });
    refused(again, 409, 6);
    same((await w.owner.get(`/registry/v2/repos/${made.uid}`)).json, made, 'the first one');
    const other = await w.group(w.org, 'other');
    same((await w.repo(other, { name })).name, name, 'name in another group');
  });
  await check('list by name', async () => {
    const made = await w.repo(group);
    same((await w.viewer.get('/registry/v2/repos', { name: made.name, 'uidp.children_of': group })).json.repos, [made], 'repos');
  });
  await check('every bad field is named at once', async () =>
    badFields(await w.owner.post(path, { name: 'Bad!Name', aliases: ['no-colon'], bundles: ['no-such-bundle'], description: 'x'.repeat(600) }), domain, 'name', 'aliases', 'bundles', 'description'));
  await check('a missing name and a body of the wrong type are refused', async () => {
    badFields(await w.owner.post(path, { description: 'nameless' }), domain, 'name');
    refused(await w.owner.post(path, { name: 7 }), 400, 3);
    refused(await w.owner.post(path, []), 400, 3);
    refused(await w.owner.call('POST', path, { raw: '{"name":' }), 400, 3);
  });
  await check('unknown members of a body are ignored, proto names are taken', async () => {
    const made = await w.must(w.owner.post(path, { name: unique('loose'), nonsense: { a: 1 }, catalog_tier: 'CATALOG_TIER_AI', active_tags: ['x'] }));
    has(made, { catalogTier: 'CATALOG_TIER_AI', activeTags: ['x'] });
  });
  await check('viewers and strangers make, change and delete none', async () => {
    const made = await w.repo(group);
    for (const api of [w.viewer, w.stranger]) {
      forbidden(await api.post(path, { name: unique('x') }), domain);
      forbidden(await api.patch(`/registry/v2/repos/${made.uid}`, { description: 'x' }, { updateMask: 'description' }), domain);
      forbidden(await api.delete(`/registry/v2/repos/${made.uid}`), domain);
    }
    same((await w.owner.get(`/registry/v2/repos/${made.uid}`)).json, made, 'repository');
  });
  await check('DELETE answers 200 with no body, a second one 404', async () => {
    const made = await w.repo(group);
    const gone = await w.owner.delete(`/registry/v2/repos/${made.uid}`);
    same([gone.status, gone.text], [200, ''], 'status and body');
    same((await w.owner.delete(`/registry/v2/repos/${made.uid}`)).status, 404, 'status of the second');
    same((await w.owner.get('/registry/v2/repos', { 'uidp.children_of': group, name: made.name })).json.repos, [], 'list');
  });
  await check('a name is free again after DELETE', async () => {
    const made = await w.repo(group);
    same((await w.owner.delete(`/registry/v2/repos/${made.uid}`)).status, 200, 'status');
    that((await w.repo(group, { name: made.name })).uid !== made.uid, 'the same uid again');
  });
}
