// 2 and 4.2: the hierarchy filters.
import { check, same, that } from '../lib/check.mjs';
import { forbidden, notFound, refused } from '../lib/status.mjs';
import { absentIn, absentRoot } from '../lib/names.mjs';

export const title = 'Hierarchy filters';

export async function run(w) {
  // top ─ a ─ b ─ c, with one repository in each.
  const top = await w.group(w.org, 'top');
  const a = await w.group(top, 'a--');
  const b = await w.group(a, 'b--');
  const c = await w.group(b, 'c--');
  const repo = {};
  for (const [name, group] of Object.entries({ top, a, b, c })) repo[name] = (await w.repo(group)).uid;
  const sorted = (...list) => list.sort();
  const groups = async (query, api = w.owner) => (await w.must(api.get('/iam/v2/groups', query))).groups.map((g) => g.uid).sort();
  const repos = async (query, api = w.owner) => (await w.must(api.get('/registry/v2/repos', query))).repos.map((r) => r.uid).sort();
  const old = async (path, query) => (await w.must(w.owner.get(path, query))).items.map((x) => x.id).sort();

  await check('uidp.descendants_of: below the group at any depth, the group itself not', async () => {
    same(await groups({ 'uidp.descendants_of': top }), sorted(a, b, c), 'groups');
    same(await repos({ 'uidp.descendants_of': a }), sorted(repo.a, repo.b, repo.c), 'repositories');
    same(await groups({ 'uidp.descendants_of': c }), [], 'groups below a leaf');
  });
  await check('uidp.children_of: directly below', async () => {
    same(await groups({ 'uidp.children_of': top }), [a], 'groups');
    same(await repos({ 'uidp.children_of': b }), [repo.b], 'repositories');
  });
  await check('v1 knows the same filters', async () => {
    same(await old('/iam/v1/groups', { 'uidp.descendants_of': top }), sorted(a, b, c), 'groups below');
    same(await old('/iam/v1/groups', { 'uidp.children_of': top }), [a], 'groups directly below');
    same(await old('/registry/v1/repos', { 'uidp.descendants_of': b }), sorted(repo.b, repo.c), 'repositories below');
    same(await old('/registry/v1/repos', { 'uidp.children_of': b }), [repo.b], 'repositories directly below');
  });
  await check('the camelCase spelling works too', async () => {
    same(await groups({ 'uidp.descendantsOf': top }), sorted(a, b, c), 'descendantsOf');
    same(await repos({ 'uidp.childrenOf': b }), [repo.b], 'childrenOf');
  });
  await check('uidp.ancestors_of, uidp.in_root, uidp.ids', async () => {
    const up = await groups({ 'uidp.ancestors_of': b });
    for (const uid of [w.org, top, a]) that(up.includes(uid), `${uid} is not among the ancestors`);
    that(!up.includes(b) && !up.includes(c), 'the group itself or a child is among its ancestors');
    same(await groups({ 'uidp.in_root': true }), [w.org], 'in_root');
    same(await groups({ 'uidp.ids': [a, c] }), sorted(a, c), 'ids');
    same(await groups({ 'uidp.ids': [absentIn(w.org), a] }), [a], 'ids, one of them missing');
  });
  await check('several filters mean AND', async () => {
    same(await groups({ 'uidp.descendants_of': top, 'uidp.children_of': a }), [b], 'descendants_of and children_of');
    same(await groups({ 'uidp.descendants_of': b, 'uidp.children_of': top }), [], 'filters that exclude each other');
    same(await groups({ 'uidp.descendants_of': top, 'uidp.ids': [a, w.org] }), [a], 'descendants_of and ids');
  });
  await check('without a filter: what is visible, and 200 even if that is nothing', async () => {
    that((await groups({ page_size: 200 })).includes(w.org), 'the organization is missing');
    same(await groups({}, w.unbound), [], 'groups of an identity without bindings');
    same(await repos({}, w.unbound), [], 'repositories of an identity without bindings');
    same(await repos({}, w.stranger), [], 'repositories of a stranger');
  });
  await check('a filter where the caller holds nothing is 403', async () => {
    for (const filter of ['uidp.descendants_of', 'uidp.children_of']) {
      forbidden(await w.stranger.get('/iam/v2/groups', { [filter]: w.org }), 'iam.chainguard.dev');
      forbidden(await w.stranger.get('/registry/v2/repos', { [filter]: a }), 'registry.chainguard.dev');
      forbidden(await w.stranger.get('/registry/v2/repos', { [filter]: absentIn(w.org) }), 'registry.chainguard.dev');
      forbidden(await w.owner.get('/registry/v2/repos', { [filter]: absentRoot() }), 'registry.chainguard.dev');
    }
  });
  await check('a filter where the caller may look and nothing is there is 404', async () => {
    for (const filter of ['uidp.descendants_of', 'uidp.children_of']) {
      const absent = absentIn(w.org);
      notFound(await w.owner.get('/iam/v2/groups', { [filter]: absent }), 'iam.chainguard.dev', 'iam.chainguard.dev/Group', absent);
    }
  });
  await check('a caller bound far below sees just that', async () => {
    const low = await w.fresh();
    await w.bind(b, low.uid, w.roles.viewer);
    same(await groups({}, low.api), sorted(b, c), 'groups without a filter');
    same(await groups({ 'uidp.descendants_of': top }, low.api), sorted(b, c), 'groups below a group above');
    same(await repos({ 'uidp.descendants_of': w.org }, low.api), sorted(repo.b, repo.c), 'repositories below the organization');
    forbidden(await low.api.get(`/iam/v2/groups/${a}`), 'iam.chainguard.dev');
  });
  await check('total_count counts what the caller may see', async () => {
    same((await w.viewer.get('/iam/v2/groups', { 'uidp.descendants_of': top, page_size: 1 })).json.total_count, 3, 'total_count for the viewer');
    same((await w.unbound.get('/iam/v2/groups')).json.total_count, 0, 'total_count without bindings');
  });
  await check('a malformed UIDP in a filter is refused', async () => {
    for (const bad of ['nonsense', `${w.org}/`, `${w.org}/xyz`, 'F'.repeat(40)]) refused(await w.owner.get('/iam/v2/groups', { 'uidp.descendants_of': bad }), 400, 3);
  });
}
