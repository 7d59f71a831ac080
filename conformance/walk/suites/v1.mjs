// v1: whole lists, PUT, and answers that do not tell why they are empty.
import { check, has, same, that } from '../lib/check.mjs';
import { bare } from '../lib/status.mjs';
import { absentIn, absentRoot, unique } from '../lib/names.mjs';

export const title = 'v1 conventions';

export async function run(w) {
  const group = await w.group(w.org, 'legacy');
  const list = (api, path, query) => api.get(path, query);

  await check('v1 groups: create, PUT, list by id, delete', async () => {
    const name = unique('one');
    const made = (await w.must(w.owner.post(`/iam/v1/groups/${group}`, { name, description: 'first\nsecond' })));
    has(made, { name, description: 'first\nsecond', verified: false });
    const put = await w.owner.put(`/iam/v1/groups/${made.id}`, { name });
    same(put.status, 200, 'status of PUT');
    has(put.json, { id: made.id, name, description: '' });
    same((await list(w.owner, '/iam/v1/groups', { id: made.id })).json.items, [put.json], 'list by id');
    const gone = await w.owner.delete(`/iam/v1/groups/${made.id}`);
    same([gone.status, gone.json], [200, {}], 'status and body of DELETE');
  });

  await check('v1 repos: PUT replaces everything', async () => {
    const name = unique('full');
    const made = await w.must(w.owner.post(`/registry/v1/repos/${group}`, { name, description: 'd', readme: '# Title\n', catalogTier: 'BASE', bundles: ['base', 'ai'], aliases: ['a/b:c'], activeTags: ['latest'] }));
    has(made, { name, description: 'd', readme: '# Title\n', catalogTier: 'BASE', bundles: ['base', 'ai'], aliases: ['a/b:c'], activeTags: ['latest'] });
    const put = await w.must(w.owner.put(`/registry/v1/repos/${made.id}`, { name, catalogTier: 'APPLICATION' }));
    has(put, { id: made.id, name, description: '', readme: '', catalogTier: 'APPLICATION', bundles: [], aliases: [], activeTags: [], createTime: made.createTime });
    same((await list(w.owner, '/registry/v1/repos', { id: made.id })).json.items, [put], 'list by id');
    const gone = await w.owner.delete(`/registry/v1/repos/${made.id}`);
    same([gone.status, gone.json], [200, {}], 'status and body of DELETE');
  });

  await check('v1 repos: create again overwrites, unless prevent_existing', async () => {
    const name = unique('again');
    const first = await w.must(w.owner.post(`/registry/v1/repos/${group}`, { name, description: 'one' }));
    const second = await w.must(w.owner.post(`/registry/v1/repos/${group}`, { name, description: 'two' }));
    same([second.id, second.description], [first.id, 'two'], 'id and description');
    same((await w.owner.post(`/registry/v1/repos/${group}`, { name }, { prevent_existing: true })).status, 409, 'status with prevent_existing');
  });

  const missing = { 'no match': absentIn(w.org), 'no permission': w.elsewhere, 'a missing parent': `${absentIn(w.org)}/${'0'.repeat(16)}`, 'a missing organization': absentRoot() };
  for (const [name, id] of Object.entries(missing)) {
    await check(`v1 lists answer {items:[]} and 200 for ${name}`, async () => {
      for (const path of ['/iam/v1/groups', '/registry/v1/repos', '/iam/v1/identities', '/iam/v1/roles', '/iam/v1/rolebindings']) {
        const answer = await list(w.owner, path, { id });
        same([answer.status, answer.text.replace(/\s/g, '')], [200, '{"items":[]}'], `answer of ${path}`);
      }
      for (const path of ['/iam/v1/groups', '/registry/v1/repos']) {
        const answer = await list(w.owner, path, { 'uidp.descendants_of': id });
        same([answer.status, answer.json], [200, { items: [] }], `answer of ${path} below it`);
      }
    });
  }

  await check('v1 writes to what is missing or forbidden are bare errors', async () => {
    const absent = absentIn(group);
    bare(await w.owner.put(`/registry/v1/repos/${absent}`, { name: 'x-y-z' }), 404, 5);
    bare(await w.owner.delete(`/registry/v1/repos/${absent}`), 404, 5);
    bare(await w.owner.delete(`/iam/v1/groups/${absent}`), 404, 5);
    bare(await w.stranger.delete(`/iam/v1/groups/${group}`), 403, 7);
    bare(await w.viewer.post(`/iam/v1/groups/${group}`, { name: unique('x') }), 403, 7);
  });

  await check('v1 a blocked delete fails without telling why in detail', async () => {
    await w.group(group, 'child');
    bare(await w.owner.delete(`/iam/v1/groups/${group}`), 400, 9);
  });

  await check('v1 lists are whole, sliced by offset or page, and carry no count', async () => {
    const many = await w.group(w.org, 'whole');
    const names = [];
    for (let i = 0; i < 60; i += 1) {
      const name = `whole-${String(i).padStart(3, '0')}`;
      names.push(name);
      await w.repo(many, { name });
    }
    const scope = { 'uidp.children_of': many };
    const whole = await list(w.owner, '/registry/v1/repos', scope);
    same(Object.keys(whole.json), ['items'], 'members');
    same(whole.json.items.map((r) => r.name).sort(), names, 'names');
    const ids = whole.json.items.map((r) => r.id);
    const slice = async (query) => (await list(w.owner, '/registry/v1/repos', { ...scope, ...query })).json.items.map((r) => r.id);
    same(await slice({ offset: 10, limit: 20 }), ids.slice(10, 30), 'offset=10&limit=20');
    same(await slice({ offset: 50, limit: 20 }), ids.slice(50), 'offset=50&limit=20');
    same(await slice({ page: 2, page_size: 25 }), ids.slice(25, 50), 'page=2&page_size=25');
    same(await slice({ offset: 100, limit: 20 }), [], 'offset=100&limit=20');
  });

  await check('v1 and v2 serve the same rows', async () => {
    const old = await w.must(w.owner.post(`/registry/v1/repos/${group}`, { name: unique('both'), description: 'd' }));
    const now = (await w.owner.get(`/registry/v2/repos/${old.id}`)).json;
    has(now, { uid: old.id, name: old.name, description: 'd', createTime: old.createTime });
    await w.must(w.owner.patch(`/registry/v2/repos/${old.id}`, { description: 'e' }, { updateMask: 'description' }));
    same((await list(w.owner, '/registry/v1/repos', { id: old.id })).json.items[0].description, 'e', 'description in v1');
    same((await w.owner.delete(`/registry/v2/repos/${old.id}`)).status, 200, 'status of DELETE');
    same((await list(w.owner, '/registry/v1/repos', { id: old.id })).json.items, [], 'items in v1');
  });

  await check('v1 members: roles say capabilities as strings, bindings nest group and role', async () => {
    const roles = (await list(w.owner, '/iam/v1/roles', { name: 'viewer' })).json.items;
    same(roles.length, 1, 'roles named viewer');
    that(roles[0].capabilities.includes('groups.list'), 'viewer lacks groups.list');
    const bindings = (await list(w.owner, '/iam/v1/rolebindings', { 'uidp.children_of': w.org })).json.items;
    const own = bindings.find((b) => b.identity === w.ids.owner);
    has(own, { claimMatchIssuer: w.idp.issuer, claimMatchSubject: 'walk-owner' }, 'binding');
    same([own.group.id, own.role.id, typeof own.createdAt], [w.org, w.roles.owner, 'string'], 'group, role, createdAt');
  });

  await check('v1 identities: create, PUT, look up, delete', async () => {
    const subject = unique('subject');
    const made = await w.must(w.owner.post(`/iam/v1/identities/${group}`, { name: 'legacy identity', description: 'd', claimMatch: { issuer: w.idp.issuer, subject } }));
    has(made, { name: 'legacy identity', description: 'd' });
    const put = await w.must(w.owner.put(`/iam/v1/identities/${made.id}`, { name: 'renamed', claimMatch: { issuer: w.idp.issuer, subject } }));
    has(put, { id: made.id, name: 'renamed', description: '', createdAt: made.createdAt });
    same((await list(w.owner, '/iam/v1/identities', { id: made.id })).json.items, [put], 'list by id');
    same((await w.owner.delete(`/iam/v1/identities/${made.id}`)).status, 200, 'status of DELETE');
  });

  await check('v1 accepts the proto names on input', async () => {
    const made = await w.must(w.owner.post(`/registry/v1/repos/${group}`, { name: unique('snake'), catalog_tier: 'BASE', active_tags: ['latest'] }));
    has(made, { catalogTier: 'BASE', activeTags: ['latest'] });
  });
}
