// What the pages of the console cost, on a server with 10,000 repositories, 5,000 tags and 100,000 audit rows. By hand, on a
// machine that does nothing else, with a release build:
//
//   CONSOLE_MODULES=... CHROMIUM=... node conformance/console/budgets.mjs target/release/bowline
//
//   CONSOLE_MODULES   where `npm ci` of this directory's package-lock.json installed playwright-core
//   SCALE             0.01 for a world of a hundredth, to try the program
//
// Requests, bytes, calls and shifts of the layout have budgets: one that is missed is exit code 1. Times are printed alone,
// beside what they should be, since they depend on the machine.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

const { CONSOLE_MODULES, CHROMIUM } = process.env;
const SCALE = Number(process.env.SCALE ?? 1);
const [binary] = process.argv.slice(2);
if (!binary) throw new Error('usage: budgets.mjs BINARY');
const { chromium } = createRequire(path.join(CONSOLE_MODULES, 'package.json'))('playwright-core');
const [REPOS, TAGS, ROWS] = [10_000, 5_000, 100_000].map((number) => Math.ceil(number * SCALE));
const BUDGET = { requests: 4, page: 60e3, script: 12e3, style: 14e3, calls: 12, cls: 0.02 };
const [AT_ONCE, ROUNDS] = [48, 60];
const work = mkdtempSync(path.join(os.tmpdir(), 'budgets.'));

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const p95 = (numbers) => [...numbers].sort((a, b) => a - b)[Math.ceil(numbers.length * 0.95) - 1];
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((ready) => { server.on('listening', ready); });
  const { port } = server.address();
  await new Promise((closed) => { server.close(closed); });
  return port;
}

/** A server on the data directory; its address, and how it ends. */
async function started(data, options = []) {
  const [port, admin] = [await freePort(), await freePort()];
  const log = openSync(path.join(work, 'server.log'), 'a');
  const child = spawn(binary, ['serve', '--data-dir', data, '--listen', `127.0.0.1:${port}`, '--admin-listen', `127.0.0.1:${admin}`,
    '--log', 'warn', '--rate-limit-address', '0', ...options], { stdio: ['ignore', log, log] });
  const isReady = () => fetch(`http://127.0.0.1:${admin}/readyz`).then((answer) => answer.ok, () => false);
  for (let tries = 0; !await isReady(); tries += 1) {
    if (tries > 600 || child.exitCode !== null) throw new Error(readFileSync(path.join(work, 'server.log'), 'utf8'));
    await pause(100);
  }
  const ended = new Promise((resolve) => { child.on('exit', resolve); });
  const stop = async () => { child.kill(); await ended; };
  return { base: `http://127.0.0.1:${port}`, pid: child.pid, stop };
}

const anonymous = (pid) => Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(/RssAnon:\s+(\d+)/)[1]) * 1024;

/** Calls of the operator to a server. */
function caller(base, data) {
  const token = execFileSync(binary, ['operator', 'token', '--reason', 'budgets', '--data-dir', data], { encoding: 'utf8' }).trim();
  return async (verb, where, body, bearer = token, type = 'application/json') => {
    const answer = await fetch(base + where, {
      method: verb, headers: { authorization: `Bearer ${bearer}`, ...(body && { 'content-type': type }) },
      body: body && (type === 'application/json' ? JSON.stringify(body) : body),
    });
    if (!answer.ok) throw new Error(`${verb} ${where}: ${answer.status} ${await answer.text()}`);
    return answer.json().catch(() => ({}));
  };
}

/** Does something so many times, some at once. */
async function times(number, make) {
  let next = 0;
  const one = async () => { while (next < number) { next += 1; await make(next - 1); } };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}

async function seed(base, call) {
  const org = (await call('POST', '/iam/v2/groups', { name: 'budgets' })).uid;
  const groups = [];
  for (let number = 0; number < 10; number += 1) groups.push((await call('POST', `/iam/v2/groups/${org}`, { name: `team ${number}` })).uid);
  let made = 0;
  let repo;
  await times(REPOS, async (number) => {
    const { uid } = await call('POST', `/registry/v2/repos/${groups[number % groups.length]}`, { name: `repository-${number}`, description: `Image number ${number}` });
    repo ??= uid;
    made += 1;
  });
  const digest = await push(base, call, repo);
  await times(TAGS, async (number) => { await call('POST', `/registry/v2/tags/${repo}`, { name: `v1.${number}`, digest }); made += 1; });
  await times(Math.max(0, ROWS - made), async (number) => call('PATCH', `/iam/v2/groups/${groups[number % groups.length]}`, { description: `Change ${number}` }));
  return { org, group: groups[0], repo, digest };
}

async function push(base, call, repo) {
  const { token } = await call('GET', `/sts/exchange?aud=${new URL(base).host}`);
  const sha256 = (bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  const blob = async (bytes, mediaType) => {
    await call('POST', `/v2/${repo}/blobs/uploads/?digest=${sha256(bytes)}`, bytes, token, 'application/octet-stream');
    return { mediaType, size: bytes.length, digest: sha256(bytes) };
  };
  const config = await blob(Buffer.from('{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}'), 'application/vnd.oci.image.config.v1+json');
  const layer = await blob(Buffer.alloc(10_000, 'layer'), 'application/vnd.oci.image.layer.v1.tar');
  const type = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = JSON.stringify({ schemaVersion: 2, mediaType: type, config, layers: [layer] });
  await call('PUT', `/v2/${repo}/manifests/first`, manifest, token, type);
  return sha256(manifest);
}

/** Begins to watch what a page does while it is shown. */
function watch() {
  globalThis.seen = { lcp: 0, cls: 0, inp: 0 };
  const observe = (type, use, more) => new PerformanceObserver((list) => list.getEntries().forEach(use)).observe({ type, buffered: true, ...more });
  observe('largest-contentful-paint', (entry) => { globalThis.seen.lcp = entry.startTime; });
  observe('layout-shift', (entry) => { if (!entry.hadRecentInput) globalThis.seen.cls += entry.value; });
  observe('event', (entry) => { if (entry.interactionId) globalThis.seen.inp = Math.max(globalThis.seen.inp, entry.duration); }, { durationThreshold: 16 });
}

async function entered(browser, base, data) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: 'light' });
  await context.addInitScript(watch);
  const page = await context.newPage();
  const link = execFileSync(binary, ['operator', 'login-url', '--reason', 'budgets', '--data-dir', data], { encoding: 'utf8' });
  await page.goto(link.trim());
  await page.click('button:has-text("Open the console")');
  await page.waitForURL(`${base}/console/`);
  return page;
}

/** A page opened with an empty cache; what it took. */
async function cold(page, address) {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  await session.send('Network.clearBrowserCache');
  const [requests, bodies] = [[], {}];
  const note = (request) => { if (!request.url().startsWith('data:')) requests.push(request.url()); };
  const keep = async (answer) => { bodies[answer.url()] = await answer.body().catch(() => Buffer.alloc(0)); };
  const waiting = [];
  page.on('request', note);
  page.on('response', (answer) => waiting.push(keep(answer)));
  await page.goto(address, { waitUntil: 'load' });
  await Promise.all(waiting);
  page.removeAllListeners('request');
  page.removeAllListeners('response');
  await pause(200);
  const gzip = (url) => gzipSync(bodies[url] ?? Buffer.alloc(0), { level: 6 }).length;
  const of = (ending) => requests.filter((url) => url.endsWith(ending)).map(gzip).reduce((sum, one) => sum + one, 0);
  const calls = await page.$$eval('details.code > h2', (found) => found.length);
  await page.click('details.code > summary').catch(() => {});
  await page.keyboard.press('/');
  await page.keyboard.type('engine');
  await pause(200);
  const { lcp, cls, inp } = await page.evaluate(() => globalThis.seen);
  await session.detach();
  return { requests: requests.length, page: gzip(address), raw: bodies[address]?.length ?? 0, script: of('.js'), style: of('.css'), calls, lcp, cls, inp };
}

/** Times until the first byte of a page, one after the other. */
async function served(page, address) {
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
  const found = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = performance.now();
    const answer = await fetch(address, { headers: { cookie } });
    found.push(performance.now() - start);
    await answer.arrayBuffer();
  }
  return p95(found);
}

/** The largest paint with a slow processor on a slow line. */
async function slow(page, address) {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  await session.send('Network.clearBrowserCache');
  await session.send('Emulation.setCPUThrottlingRate', { rate: 4 });
  await session.send('Network.emulateNetworkConditions', { offline: false, latency: 150, downloadThroughput: 1.6e6 / 8, uploadThroughput: 750e3 / 8 });
  await page.goto(address, { waitUntil: 'load' });
  await pause(500);
  const { lcp } = await page.evaluate(() => globalThis.seen);
  await session.send('Emulation.setCPUThrottlingRate', { rate: 1 });
  await session.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
  await session.detach();
  return lcp;
}

function pages({ org, group, repo, digest }) {
  const at = (page, query) => `/console/${page}?${new URLSearchParams(query)}`;
  return {
    start: '/console/',
    home: at('home', { in: org }),
    group: at('group', { uid: group }),
    groups: at('groups', { in: org }),
    repositories: at('repositories', { in: org }),
    'repositories, by size': at('repositories', { in: org, order: 'size desc' }),
    'repositories, filtered': at('repositories', { in: org, q: '999' }),
    repository: at('repository', { uid: repo }),
    tags: at('tags', { repo }),
    image: at('image', { repo, digest }),
    audit: at('audit', { in: org }),
    'audit, one method': at('audit', { in: org, method: 'chainguard.platform.registry.v2.TagsService.CreateTag' }),
    history: at('history', { resource: group }),
    identities: at('identities', { in: org }),
    access: at('access', { in: org }),
    search: at('search', { q: 'repository-99' }),
    operator: '/console/operator',
    organizations: '/console/organizations',
    method: at('method', { name: 'chainguard.platform.iam.v2.IdentitiesService.CreateIdentity' }),
    methods: '/console/methods',
  };
}

/** Memory of an idle server, with and without the console. */
async function memory(data) {
  const found = { true: [], false: [] };
  for (let round = 0; round < 5; round += 1) {
    for (const on of ['true', 'false']) {
      const server = await started(data, ['--console', on]);
      await pause(2000);
      found[on].push(anonymous(server.pid));
      await server.stop();
    }
  }
  return (median(found.true) - median(found.false)) / 1e6;
}

const data = path.join(work, 'data');
let browser;
let server;
let missed = 0;
try {
  server = await started(data);
  const call = caller(server.base, data);
  const start = performance.now();
  const world = await seed(server.base, call);
  console.log(`${os.cpus().length} processors, ${Math.round(os.totalmem() / 2 ** 30)} GiB; ${REPOS} repositories, ${TAGS} tags, ${ROWS} audit rows in ${Math.round((performance.now() - start) / 1000)} s; load ${os.loadavg().map((one) => one.toFixed(1)).join(' ')}`);
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-quic'] });
  const page = await entered(browser, server.base, data);
  const head = ['page', 'requests', 'kB gzip', 'kB', 'calls', 'p95 ms', 'LCP ms', 'slow LCP', 'INP ms', 'CLS'];
  const line = (cells) => cells.map((cell, at) => (at === 0 ? String(cell).padEnd(24) : String(cell).padStart(9))).join('');
  console.log(line(head));
  const over = [];
  const slowest = { p95: 0, lcp: 0, slow: 0, inp: 0 };
  let assets;
  for (const [name, where] of Object.entries(pages(world))) {
    const found = await cold(page, server.base + where);
    const [first, late] = [await served(page, server.base + where), await slow(page, server.base + where)];
    assets = found;
    console.log(line([name, found.requests, (found.page / 1e3).toFixed(1), (found.raw / 1e3).toFixed(0), found.calls, first.toFixed(1), found.lcp.toFixed(0), late.toFixed(0), found.inp.toFixed(0), found.cls.toFixed(3)]));
    for (const [what, most] of Object.entries(BUDGET)) if (found[what] > most) over.push(`${name}: ${what} is ${found[what]}, at most ${most}`);
    if (name !== 'home') slowest.p95 = Math.max(slowest.p95, first);
    slowest.lcp = Math.max(slowest.lcp, found.lcp);
    slowest.slow = Math.max(slowest.slow, late);
    slowest.inp = Math.max(slowest.inp, found.inp);
  }
  console.log(`script ${(assets.script / 1e3).toFixed(1)} of ${BUDGET.script / 1e3} kB, style ${(assets.style / 1e3).toFixed(1)} of ${BUDGET.style / 1e3} kB`);
  console.log(`slowest: first byte ${slowest.p95.toFixed(1)} ms (40; home 80), LCP ${slowest.lcp.toFixed(0)} ms (300), with 4x CPU and 1.6 Mbit/s ${slowest.slow.toFixed(0)} ms (1500), INP ${slowest.inp.toFixed(0)} ms (100)`);
  await server.stop();
  const more = await memory(data);
  console.log(`memory with the console, unused: ${more.toFixed(1)} MB more (5)`);
  if (more > 5) over.push(`memory: ${more} MB more`);
  missed = over.length;
  console.log(missed === 0 ? 'all budgets are met' : over.join('\n'));
} finally {
  await browser?.close();
  await server?.stop();
  rmSync(work, { recursive: true, force: true });
}
process.exitCode = missed === 0 ? 0 : 1;
