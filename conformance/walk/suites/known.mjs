// 4.4: the endpoints that the document names, as it names them.
import { check, has, same, that } from '../lib/check.mjs';
import { refused } from '../lib/status.mjs';
import { instant, pause, unique } from '../lib/names.mjs';

export const title = 'Endpoints named by the document';

export async function run(w) {
  const group = await w.group(w.org, 'known');
  const made = await w.repo(group, { description: 'before' });

  await check('GET /iam/v1/groups answers {items:[group...]}', async () => {
    const answer = await w.owner.get('/iam/v1/groups');
    same(answer.status, 200, 'status');
    same(Object.keys(answer.json), ['items'], 'members');
    const item = answer.json.items.find((g) => g.id === w.org);
    that(item, 'the caller\'s organization is not among the items');
    same([typeof item.name, typeof item.description, typeof item.resourceLimits, typeof item.verified], ['string', 'string', 'object', 'boolean'], 'types of name, description, resourceLimits, verified');
    for (const limit of Object.values(item.resourceLimits)) that(Number.isInteger(limit), 'a resource limit is no integer');
  });
  await check('GET /iam/v1/groups answers with the groups the caller belongs to', async () => {
    const ids = async (api) => (await api.get('/iam/v1/groups')).json.items.map((g) => g.id);
    that((await ids(w.viewer)).includes(group), 'the viewer misses a group below its organization');
    const strangers = await ids(w.stranger);
    that(strangers.includes(w.elsewhere), 'the stranger misses its own organization');
    that(!strangers.some((id) => id.startsWith(w.org)), 'the stranger sees a group of another organization');
    same(await ids(w.unbound), [], 'groups of an identity without bindings');
  });
  await check('GET /registry/v1/repos answers {items:[repo...]}', async () => {
    const answer = await w.viewer.get('/registry/v1/repos', { 'uidp.children_of': group });
    same(answer.status, 200, 'status');
    same(Object.keys(answer.json), ['items'], 'members');
    same(answer.json.items.map((r) => r.id), [made.uid], 'ids');
  });
  await check('GET /registry/v2/repos answers with items and paging data', async () => {
    const answer = await w.viewer.get('/registry/v2/repos', { 'uidp.children_of': group });
    same(answer.status, 200, 'status');
    same(answer.json.repos.map((r) => r.uid), [made.uid], 'uids');
    has(answer.json, { total_count: 1, totalCount: '1', skipped: 0 });
    for (const key of Object.keys(answer.json)) that(['repos', 'total_count', 'totalCount', 'skipped'].includes(key), `member ${key} on an only page`);
  });
  await check('GET /registry/v2/repos/{uid} answers with the repository', async () => {
    const answer = await w.viewer.get(`/registry/v2/repos/${made.uid}`);
    same(answer.status, 200, 'status');
    same(answer.json, made, 'repository');
  });
  await check('PATCH /registry/v2/repos/{uid}?updateMask=description changes the description', async () => {
    await pause(5);
    const answer = await w.owner.patch(`/registry/v2/repos/${made.uid}`, { description: 'after' }, { updateMask: 'description' });
    same(answer.status, 200, 'status');
    same({ ...answer.json, updateTime: 0 }, { ...made, description: 'after', updateTime: 0 }, 'repository');
    that(instant(answer.json.updateTime) > instant(made.updateTime), 'updateTime did not advance');
    same((await w.owner.get(`/registry/v2/repos/${made.uid}`)).json, answer.json, 'the next read');
  });
  await check('DELETE /registry/v2/repos/{uid} answers with an empty body', async () => {
    const answer = await w.owner.delete(`/registry/v2/repos/${made.uid}`);
    same([answer.status, answer.text], [200, ''], 'status and body');
    same((await w.owner.get(`/registry/v2/repos/${made.uid}`)).status, 404, 'status of the next read');
  });

  const reads = ['/iam/v1/groups', '/registry/v1/repos', '/registry/v2/repos', `/registry/v2/repos/${made.uid}`, '/auth/v1/ok', '/iam/v2/groups', `/iam/v2/groups/${w.org}`];
  for (const path of reads) {
    const name = path.replace(/[0-9a-f]{40}.*/, '{uid}');
    await check(`GET ${name} without a token is 401`, async () => {
      const answer = await w.nobody.get(path);
      refused(answer, 401, 16);
      that((answer.headers.get('www-authenticate') ?? '').startsWith('Bearer'), 'no WWW-Authenticate: Bearer');
    });
  }
  for (const [method, path, body] of [
    ['PATCH', `/registry/v2/repos/${made.uid}?updateMask=description`, { description: 'x' }], ['DELETE', `/registry/v2/repos/${made.uid}`],
    ['POST', `/registry/v2/repos/${group}`, { name: 'x' }], ['PUT', `/registry/v1/repos/${made.uid}`, { name: 'x' }],
  ]) {
    await check(`${method} ${path.slice(0, 18)}{uid} without a token is 401`, async () => refused(await w.nobody.call(method, path, { body }), 401, 16));
  }

  // 4.1: the shape of Create, with the parent in the path and no wrapper.
  await check('Create takes the resource without a wrapper, the parent in the path', async () => {
    for (const version of ['v1', 'v2']) {
      const name = unique('plain');
      const answer = await w.owner.post(`/iam/${version}/groups/${group}`, { name, description: 'plain' });
      same(answer.status, 200, `status in ${version}`);
      has(answer.json, { name, description: 'plain' });
      const wrapped = await w.owner.post(`/iam/${version}/groups/${group}`, { group: { name: unique('wrapped') } });
      same(wrapped.status, 400, `status of a wrapped body in ${version}`);
    }
  });
  await check('slashes of a parent may be escaped', async () => {
    const answer = await w.owner.post(`/iam/v2/groups/${encodeURIComponent(group)}`, { name: unique('escaped') });
    same(answer.status, 200, 'status');
    that(answer.json.uid.startsWith(`${group}/`), `uid ${answer.json.uid} is not below ${group}`);
    same((await w.owner.get(`/iam/v2/groups/${encodeURIComponent(answer.json.uid)}`)).json, answer.json, 'the next read');
  });
  await check('a GET route takes the same parameters as a posted form, and no JSON', async () => {
    const [read, form] = [await w.owner.get('/auth/v1/ok'), await w.owner.form('/auth/v1/ok', {})];
    same([form.status, form.json], [200, read.json], 'answer to the form');
    same((await w.owner.form('/auth/v1/ok', { x: 1 })).status, 400, 'status with an unknown field');
    same((await w.owner.post('/auth/v1/ok', {})).status, 405, 'status with JSON');
  });
}
