// A soak: hostile clients beside a good one, on a server that has one core.
//
//   BOWLINE=target/release/bowline node main.mjs [MINUTES]
//
// The server and the hostile clients share core 0; the good client has core 1 to itself. First the good client's
// latency is measured beside a process that spins on core 0, then beside the hostile clients, then beside the spinning
// process again. It holds if
//   - the good client's p99 beside the hostile clients is at most twice that beside the spinning process,
//   - the server's anonymous memory does not grow from the second third of the time to the last,
//   - every write that was acknowledged is there at the end.
//
// SAMPLE=1 prints the latencies and asserts the rest, memory within wider bounds: a short run beside other work says
// nothing about latencies.
import { execFileSync, spawn } from 'node:child_process';
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const { BOWLINE } = process.env;
const minutes = Number(process.argv[2] ?? 30);
const baseline = Math.min(180, minutes * 6);
const work = mkdtempSync(join(process.env.SOAK_DIR ?? tmpdir(), 'soak.'));
const children = new Set();
const pause = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

async function free(count) {
  const open = await Promise.all(Array.from({ length: count }, () => new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => done(server));
  })));
  const ports = open.map((server) => server.address().port);
  open.forEach((server) => server.close());
  return ports;
}

/** A process on one core. What it says goes to a log, or line by line to `heard`. */
function start(name, core, program, args, { env = {}, heard } = {}) {
  const log = openSync(join(work, `${name}.log`), 'a');
  const stdio = ['ignore', heard ? 'pipe' : log, log];
  const child = spawn('taskset', ['-c', String(core), program, ...args], { env: { ...process.env, ...env }, stdio });
  let rest = '';
  child.stdout?.on('data', (data) => {
    const lines = (rest + data).split('\n');
    rest = lines.pop();
    lines.forEach((line) => heard(JSON.parse(line)));
  });
  children.add(child);
  child.ended = new Promise((done) => child.once('exit', (code) => { children.delete(child); done(code); }));
  return child;
}

async function stop(child) {
  child.kill('SIGTERM');
  await child.ended;
}

const [port, admin] = await free(2);
const base = `http://127.0.0.1:${port}`;
const data = join(work, 'data');
const server = start('server', 0, BOWLINE, ['serve', '--data-dir', data, '--listen', `127.0.0.1:${port}`, '--admin-listen', `127.0.0.1:${admin}`, '--log', 'warn']);
for (let n = 0; ; n += 1) {
  if (await fetch(`http://127.0.0.1:${admin}/readyz`).then((answer) => answer.ok, () => false)) break;
  if (n > 300) throw new Error('the server did not become ready');
  await pause(0.1);
}

// ---- who calls ------------------------------------------------------------------

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const jwk = { ...createPublicKey(createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' }))).export({ format: 'jwk' }), kid: 'soak', alg: 'RS256', use: 'sig' };
const operator = execFileSync(BOWLINE, ['operator', 'token', '--reason', 'soak', '--data-dir', data], { encoding: 'utf8' }).trim();

async function call(token, verb, path, body) {
  const answer = await fetch(base + path, {
    method: verb, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${verb} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}

/** A token of an identity with that role. */
async function actor(organization, role, subject, audience = base) {
  const staticKeys = { issuer: 'https://soak.example.com', subject, issuerKeys: JSON.stringify({ keys: [jwk] }) };
  const identity = (await call(operator, 'POST', `/iam/v2/identities/${organization}`, { name: subject, staticKeys })).uid;
  const roleUid = (await call(operator, 'GET', `/iam/v2/roles?name=${role}`)).roles[0].uid;
  await call(operator, 'POST', `/iam/v2/roleBindings/${organization}`, { identityUid: identity, roleUid });
  const now = Math.floor(Date.now() / 1000);
  const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { iss: staticKeys.issuer, sub: subject, aud: base, iat: now, exp: now + 600 };
  const signed = `${encoded({ alg: 'RS256', typ: 'JWT', kid: 'soak' })}.${encoded(claims)}`;
  const jwt = `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`;
  const answer = await fetch(`${base}/sts/exchange`, { method: 'POST', headers: { authorization: `Bearer ${jwt}` }, body: new URLSearchParams({ aud: audience, identity }) });
  if (!answer.ok) throw new Error(`exchange: ${answer.status} ${await answer.text()}`);
  return (await answer.json()).token;
}

const organizations = {};
for (const name of ['quiet', 'loud']) organizations[name] = (await call(operator, 'POST', '/iam/v2/groups', { name })).uid;
const repo = (await call(operator, 'POST', `/registry/v2/repos/${organizations.loud}`, { name: 'app' })).uid;
const good = { BASE: base, ORGANIZATION: organizations.quiet, TOKEN: await actor(organizations.quiet, 'owner', 'good') };
const hostile = {
  BASE: base, ORGANIZATION: organizations.loud, REPO: repo,
  TOKEN: await actor(organizations.loud, 'owner', 'hostile'), VIEWER: await actor(organizations.loud, 'viewer', 'watcher'),
  FILLER: await actor(organizations.loud, 'owner', 'filler'), PUSHER: await actor(organizations.loud, 'owner', 'pusher', new URL(base).host),
};

/** An image whose manifest is pulled again and again. */
async function push() {
  const registry = (verb, path, body, type) => fetch(path.startsWith('http') ? path : base + path, {
    method: verb, body, headers: { authorization: `Bearer ${hostile.PUSHER}`, 'content-type': type ?? 'application/octet-stream' },
  });
  const digest = `sha256:${createHash('sha256').update('{}').digest('hex')}`;
  const begun = await registry('POST', `/v2/${organizations.loud}/app/blobs/uploads/`);
  await registry('PUT', `${begun.headers.get('location')}?digest=${digest}`, '{}');
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const config = { mediaType: 'application/vnd.oci.empty.v1+json', digest, size: 2 };
  const manifest = JSON.stringify({ schemaVersion: 2, mediaType, artifactType: 'application/x-soak', config, layers: [] });
  const answer = await registry('PUT', `/v2/${organizations.loud}/app/manifests/latest`, manifest, mediaType);
  if (answer.status !== 201) throw new Error(`push: ${answer.status} ${await answer.text()}`);
}
await push();

// ---- what is measured -------------------------------------------------------------

const pid = Number(execFileSync('pgrep', ['-f', `${BOWLINE} serve --data-dir ${data}`], { encoding: 'utf8' }).split('\n')[0]);
const anonymous = () => Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(/RssAnon:\s+(\d+)/)[1]) / 1024;
const quantile = (sorted, share) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
const acknowledged = [];

/** The good client's latencies in milliseconds over so many seconds. */
async function load(seconds, perSecond) {
  const latencies = [];
  let failures = 0;
  const client = start('good', 1, 'node', [join(here, 'good.mjs'), String(seconds), String(acknowledged.length)], {
    env: good,
    heard: ({ ms, wrote, failed }) => {
      if (failed) { failures += 1; console.log(`  failed: ${failed}`); } else latencies.push(ms);
      if (wrote) acknowledged.push(wrote);
    },
  });
  const memory = [];
  const timer = setInterval(() => memory.push(anonymous()), 5000);
  const minute = setInterval(() => perSecond?.(latencies.length, memory.at(-1)), 60_000);
  await client.ended;
  clearInterval(timer);
  clearInterval(minute);
  latencies.sort((a, b) => a - b);
  return { latencies, failures, memory };
}

const shown = ({ latencies, failures }) => `${latencies.length} calls, p50 ${quantile(latencies, 0.5).toFixed(1)} ms, p99 ${quantile(latencies, 0.99).toFixed(1)} ms, worst ${latencies.at(-1).toFixed(0)} ms, ${failures} failed`;
const spinning = () => start('spin', 0, 'node', ['-e', 'for (;;);']);

async function besideSpinning() {
  const spinner = spinning();
  const result = await load(baseline);
  await stop(spinner);
  console.log(`beside a spinning process, ${baseline} s: ${shown(result)}`);
  return result;
}

const before = await besideSpinning();
let counts = {};
const enemy = start('hostile', 0, 'node', [join(here, 'hostile.mjs')], { env: hostile, heard: (report) => { counts = report; } });
const during = await load(minutes * 60, (calls, mebibytes) => console.log(`  ${calls} calls, ${mebibytes?.toFixed(0)} MiB anonymous`));
const isStanding = children.has(enemy);
await stop(enemy);
console.log(`beside hostile clients, ${minutes} min: ${shown(during)}`);
console.log(`hostile calls by response: ${JSON.stringify(counts)}`);
const after = await besideSpinning();

// ---- whether it held ---------------------------------------------------------------

const problems = [];
const usual = quantile([...before.latencies, ...after.latencies].sort((a, b) => a - b), 0.99);
const found = quantile(during.latencies, 0.99);
console.log(`p99: ${found.toFixed(1)} ms beside hostile clients, ${usual.toFixed(1)} ms beside a spinning process: ${(found / usual).toFixed(2)}x (at most 2)`);
if (found > 2 * usual && !process.env.SAMPLE) problems.push('the good client waits');
const failures = before.failures + during.failures + after.failures;
if (failures) problems.push(`${failures} good calls failed`);
if (!isStanding) problems.push('the hostile clients ended early');

const third = Math.floor(during.memory.length / 3);
const most = (values) => Math.max(...values);
const [second, last] = [most(during.memory.slice(third, 2 * third)), most(during.memory.slice(2 * third))];
console.log(`anonymous memory: ${most(during.memory.slice(0, third)).toFixed(0)}, ${second.toFixed(0)}, ${last.toFixed(0)} MiB at most in each third`);
// A short run is over before the server has started all its threads and filled its caches.
const mayReach = process.env.SAMPLE ? second * 1.5 + 64 : second * 1.1 + 8;
if (last > mayReach) problems.push(`memory grows beyond ${mayReach.toFixed(0)} MiB`);

const there = new Map();
let page = '';
do {
  const answer = await call(operator, 'GET', `/registry/v2/repos?uidp.childrenOf=${organizations.quiet}&pageSize=200${page && `&pageToken=${encodeURIComponent(page)}`}`);
  for (const { name, description } of answer.repos ?? answer.items ?? []) there.set(name, description);
  page = answer.nextPageToken;
} while (page);
const missing = acknowledged.filter(({ name, at }) => !there.has(name) || Number(there.get(name)) < at);
console.log(`${acknowledged.length} acknowledged writes, ${missing.length} of them missing`);
if (missing.length || !acknowledged.length) problems.push('acknowledged writes are missing');

if (server.exitCode !== null) problems.push('the server ended');
await stop(server);
for (const child of children) child.kill('SIGKILL');
if (problems.length) {
  console.log(`did not hold: ${problems.join(', ')}; logs in ${work}`);
  process.exit(1);
}
rmSync(work, { recursive: true });
console.log('held');
