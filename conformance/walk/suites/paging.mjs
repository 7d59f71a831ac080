// 4.2: cursors, sizes, skips, order and counts.
import { check, has, same, that } from '../lib/check.mjs';
import { refused, v2error } from '../lib/status.mjs';
import { instant } from '../lib/names.mjs';

export const title = 'Paging';
const total = 205;

export async function run(w) {
  const group = await w.group(w.org, 'many');
  const other = await w.group(w.org, 'few');
  await w.repo(other);
  const made = [];
  for (let i = 0; i < total; i += 1) made.push(await w.repo(group, { name: `many-${String((i * 7919) % 1000).padStart(3, '0')}`, description: `number ${i}` }));
  const scope = { 'uidp.children_of': group };
  const page = (query, headers) => w.owner.get('/registry/v2/repos', { ...scope, ...query }, headers);
  const uids = made.map((r) => r.uid);

  // Follows page_token until an answer has no next_page_token.
  const walk = async (query, api = w.owner) => {
    const pages = [];
    for (let token; pages.length < 500;) {
      const { json } = await api.get('/registry/v2/repos', { ...scope, ...query, ...(token && { page_token: token }) });
      pages.push(json);
      token = json.next_page_token;
      if (token === undefined) return pages;
      that(typeof token === 'string' && token !== '', `next_page_token is ${JSON.stringify(token)}`);
    }
    throw new Error('the walk does not end');
  };
  const rows = (pages) => pages.flatMap((p) => p.repos);

  await check('page_token leads through every row once, until no next_page_token comes', async () => {
    const pages = await walk({ page_size: 50 });
    same(pages.map((p) => p.repos.length), [50, 50, 50, 50, 5], 'rows per page');
    same(rows(pages).map((r) => r.uid).sort(), [...uids].sort(), 'uids');
    that(!('next_page_token' in pages.at(-1)) && !('nextPageToken' in pages.at(-1)), 'the last page has a next_page_token');
  });
  await check('the last page may be full', async () => same((await walk({ page_size: 41 })).map((p) => p.repos.length), [41, 41, 41, 41, 41], 'rows per page'));
  await check('every page counts all matches, in both spellings', async () => {
    for (const p of await walk({ page_size: 100 })) has(p, { total_count: total, totalCount: String(total) });
    const first = (await page({ page_size: 10 })).json;
    same(first.nextPageToken, first.next_page_token, 'nextPageToken');
  });
  await check('camelCase parameters work, and answer in proto3 names alone', async () => {
    const first = (await page({ pageSize: 60 })).json;
    same([first.repos.length, 'next_page_token' in first, 'total_count' in first, first.totalCount], [60, false, false, String(total)], 'rows, next_page_token, total_count, totalCount');
    const second = (await page({ pageSize: 60, pageToken: first.nextPageToken })).json;
    that(!second.repos.some((r) => first.repos.some((f) => f.uid === r.uid)), 'the second page repeats rows');
    const strict = (await page({ page_size: 60 }, { accept: 'application/json;names=proto3' })).json;
    same(['next_page_token' in strict, 'total_count' in strict], [false, false], 'next_page_token, total_count by Accept');
  });
  await check('page_size: 50 unless given, at most 200, never negative', async () => {
    same((await page({})).json.repos.length, 50, 'rows without page_size');
    same((await page({ page_size: 0 })).json.repos.length, 50, 'rows with page_size=0');
    same((await page({ page_size: 1000 })).json.repos.length, 200, 'rows with page_size=1000');
    v2error(await page({ page_size: -1 }), 400, 3);
    refused(await page({ page_size: 'ten' }), 400, 3);
  });
  await check('skip jumps over rows and is told', async () => {
    const all = rows(await walk({ page_size: 200 })).map((r) => r.uid);
    const jumped = (await page({ page_size: 20, skip: 100 })).json;
    same(jumped.repos.map((r) => r.uid), all.slice(100, 120), 'uids');
    has(jumped, { skipped: 100, total_count: total });
    const first = (await page({ page_size: 20 })).json;
    const next = (await page({ page_size: 20, page_token: first.next_page_token, skip: 30 })).json;
    same(next.repos.map((r) => r.uid), all.slice(50, 70), 'uids after a token and a skip');
    const beyond = (await page({ skip: 1000 })).json;
    has(beyond, { repos: [], total_count: total });
    that(!('next_page_token' in beyond), 'a page beyond the end has a next_page_token');
    v2error(await page({ skip: -1 }), 400, 3);
  });
  await check('order_by name, either way, across pages', async () => {
    const names = made.map((r) => r.name).sort();
    same(rows(await walk({ order_by: 'name', page_size: 70 })).map((r) => r.name), names, 'order_by=name');
    same(rows(await walk({ order_by: 'name asc', page_size: 70 })).map((r) => r.name), names, 'order_by=name asc');
    same(rows(await walk({ order_by: 'name desc', page_size: 70 })).map((r) => r.name), [...names].reverse(), 'order_by=name desc');
  });
  await check('order_by the time of creation, in every spelling', async () => {
    for (const field of ['created_at', 'create_time', 'createTime']) {
      const times = rows(await walk({ order_by: `${field} desc`, page_size: 200 })).map((r) => r.createTime);
      that(times.every((t, i) => i === 0 || instant(t) <= instant(times[i - 1])), `the times by ${field} desc are not in order`);
    }
  });
  await check('the order is by uid unless asked otherwise', async () => same(rows(await walk({ page_size: 200 })).map((r) => r.uid), [...uids].sort(), 'uids'));
  await check('an order by an unknown field is refused', async () => v2error(await page({ order_by: 'colour' }), 400, 3, undefined, 'registry.chainguard.dev'));
  await check('a token is bound to its query, its caller and its text', async () => {
    const token = (await page({ page_size: 20, order_by: 'name' })).json.next_page_token;
    const invalid = async (answer) => v2error(await answer, 400, 3, 'PAGE_TOKEN_INVALID', 'registry.chainguard.dev');
    same((await page({ page_size: 90, order_by: 'name', page_token: token })).status, 200, 'status with another page_size');
    await invalid(page({ page_token: token }));
    await invalid(page({ order_by: 'name desc', page_token: token }));
    await invalid(w.owner.get('/registry/v2/repos', { 'uidp.children_of': other, order_by: 'name', page_token: token }));
    v2error(await w.owner.get('/iam/v2/groups', { order_by: 'name', page_token: token }), 400, 3, 'PAGE_TOKEN_INVALID', 'iam.chainguard.dev');
    await invalid(w.viewer.get('/registry/v2/repos', { ...scope, order_by: 'name', page_token: token }));
    const middle = Math.floor(token.length / 2);
    await invalid(page({ order_by: 'name', page_token: token.slice(0, middle) + (token[middle] === 'A' ? 'B' : 'A') + token.slice(middle + 1) }));
    await invalid(page({ page_token: 'nonsense' }));
  });
  await check('rows made and deleted during a walk neither repeat nor hide others', async () => {
    const first = (await page({ page_size: 100, order_by: 'name' })).json;
    const early = first.repos[3];
    same((await w.owner.delete(`/registry/v2/repos/${early.uid}`)).status, 200, 'status of DELETE');
    await w.repo(group, { name: 'many-000-early', description: early.description });
    const second = (await page({ page_size: 200, order_by: 'name', page_token: first.next_page_token })).json;
    const seen = [...first.repos, ...second.repos].map((r) => r.uid);
    same(new Set(seen).size, seen.length, 'distinct uids');
    same(seen.sort(), [...uids].sort(), 'uids of what existed at the start');
    same(second.total_count, total, 'total_count');
  });
  await check('groups page alike', async () => {
    const parent = await w.group(w.org, 'folders');
    for (let i = 0; i < 7; i += 1) await w.group(parent, 'folder');
    const sizes = [];
    for (let token; ;) {
      const { json } = await w.owner.get('/iam/v2/groups', { 'uidp.children_of': parent, page_size: 3, ...(token && { page_token: token }) });
      sizes.push(json.groups.length);
      same(json.total_count, 7, 'total_count');
      token = json.next_page_token;
      if (!token) break;
    }
    same(sizes, [3, 3, 1], 'rows per page');
  });
}
