// The registry over an object store and PostgreSQL: versitygw, unmodified, speaks S3 in front of a directory. The registry
// suite runs against it, and then what only an object store can do: go away in the middle, be full of what is nobody's,
// and serve two servers at once.
import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { check, checks } from '../lib.mjs';
import { moves } from './moves.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const { BOWLINE, VERSITYGW, OCI, BOWLINE_TEST_POSTGRES } = process.env;
const work = mkdtempSync(join(tmpdir(), 'objects.'));
const bucket = join(work, 's3', 'blobs');
mkdirSync(bucket, { recursive: true });
const ports = await free(6);
const [s3, port, admin, otherPort, otherAdmin] = ports;
const [base, other] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${otherPort}`];
const aws = {
  AWS_ENDPOINT_URL: `http://127.0.0.1:${s3}`, AWS_ALLOW_HTTP: 'true', AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'conformance', AWS_SECRET_ACCESS_KEY: randomBytes(16).toString('hex'),
};
// A database of its own, which two servers may share.
const database = `objects_${process.pid}`;
const psql = (statement) => execFileSync('psql', ['-q', '-d', BOWLINE_TEST_POSTGRES, '-c', statement], { stdio: 'pipe' });
const databases = [];
const url = createDatabase(database);
writeFileSync(join(work, 'key'), randomBytes(32), { mode: 0o600 });
const rows = ['--database-url', url.href, '--key-file', join(work, 'key')];
const storage = [...rows, '--blob-url', 's3://blobs/some/where'];
const running = new Set();

/** An empty database, removed at the end; its URL. */
function createDatabase(name) {
  psql(`CREATE DATABASE ${name}`);
  databases.push(name);
  const url = new URL(BOWLINE_TEST_POSTGRES);
  url.pathname = `/${name}`;
  return url;
}

/** Ports below those that the system gives to outgoing connections: one of them would take one while its server is down. */
async function free(n) {
  const open = [];
  while (open.length < n) {
    const server = createServer();
    const listens = await new Promise((done) => {
      server.once('error', () => done(false));
      server.listen(10000 + Math.floor(Math.random() * 10000), '127.0.0.1', () => done(true));
    });
    if (listens) open.push(server);
  }
  const found = open.map((server) => server.address().port);
  open.forEach((server) => server.close());
  return found;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function until(what, condition) {
  for (let n = 0; n < 300; n += 1) {
    if (await condition().catch(() => false)) return;
    await pause(100);
  }
  throw new Error(`${what}: not within 30 s`);
}

function start(name, program, args, env = {}) {
  const log = openSync(join(work, `${name}.log`), 'a');
  const child = spawn(program, args, { cwd: work, env: { ...process.env, ...env }, stdio: ['ignore', log, log] });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

async function stop(child, signal = 'SIGTERM') {
  const ended = new Promise((done) => child.once('exit', done));
  child.kill(signal);
  await ended;
}

async function gateway() {
  const args = ['--port', `127.0.0.1:${s3}`, '--access', aws.AWS_ACCESS_KEY_ID, '--secret', aws.AWS_SECRET_ACCESS_KEY, 'posix', join(work, 's3')];
  const child = start('versitygw', VERSITYGW, args);
  await until('the object store', async () => (await fetch(aws.AWS_ENDPOINT_URL)).status > 0);
  return child;
}

async function server(name, at, adminAt, options = storage) {
  const child = start(name, BOWLINE, ['serve', ...options, '--listen', `127.0.0.1:${at}`, '--admin-listen', `127.0.0.1:${adminAt}`,
    '--base-url', base, '--registry-host', `127.0.0.1:${port}`, '--gc-every', 'never'], aws);
  await until(name, async () => (await fetch(`http://127.0.0.1:${adminAt}/readyz`)).ok);
  return child;
}

const bowline = (...args) => execFileSync(BOWLINE, args, { encoding: 'utf8', env: { ...process.env, ...aws } }).trim();
const digest = (bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Files below the bucket that are blobs or nobody's. */
function objects() {
  const names = readdirSync(bucket, { recursive: true, withFileTypes: true });
  return names.filter((entry) => entry.isFile() && /^[0-9a-f]{16}-[0-9a-f]{16}$/.test(entry.name)).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

let token;
async function send(verb, path, { body, headers = {}, at = base } = {}) {
  const url = path.startsWith('http') ? path : at + path;
  const answer = await fetch(url, { method: verb, body, headers: { authorization: `Bearer ${token}`, ...headers }, duplex: 'half' });
  return { status: answer.status, headers: answer.headers, body: Buffer.from(await answer.arrayBuffer()) };
}

async function begun(repo) {
  const answer = await send('POST', `/v2/${repo}/blobs/uploads/`);
  if (answer.status !== 202) throw new Error(`${answer.status} ${answer.body}`);
  return answer.headers.get('location');
}

async function pushed(repo, bytes) {
  const at = await begun(repo);
  return send('PUT', `${at}?digest=${digest(bytes)}`, { body: bytes });
}

async function named(repo, tag, bytes) {
  const layer = { mediaType: 'application/octet-stream', digest: digest(bytes), size: bytes.length };
  const config = Buffer.from('{}');
  await pushed(repo, config);
  const manifest = JSON.stringify({
    schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json', artifactType: 'application/x-test',
    config: { mediaType: 'application/vnd.oci.empty.v1+json', digest: digest(config), size: 2 }, layers: [layer],
  });
  const headers = { 'content-type': 'application/vnd.oci.image.manifest.v1+json' };
  return send('PUT', `/v2/${repo}/manifests/${tag}`, { body: manifest, headers });
}

async function suite() {
  let store = await gateway();
  let first = await server('bowline', port, admin);
  const provider = join(work, 'provider.json');
  start('provider', 'node', [join(here, '../walk/lib/provider.mjs'), work, base]);
  await until('the identity provider', async () => statSync(provider).size > 0);

  // The registry suite, as over a directory.
  const OPERATOR_TOKEN = bowline('operator', 'token', '--reason', 'conformance', ...rows);
  const env = { ...process.env, BASE_URL: base, OPERATOR_TOKEN, PROVIDER: provider, BOWLINE };
  const UPSTREAM_TOKEN = execFileSync('node', [join(here, '../walk/token.mjs'), 'walk-oci'], { encoding: 'utf8', env }).trim();
  const registrySuite = (what) => {
    const told = execFileSync(OCI, { encoding: 'utf8', env: { ...env, UPSTREAM_TOKEN } });
    check(what, told.includes('ok') && !told.includes('FAIL'), told);
  };
  registrySuite('the registry suite passes over an object store');
  check('its blobs lie in the bucket', objects().length > 0 && !existsSync(join(work, 'bowline-data')));

  token = bowline('operator', 'token', '--reason', 'conformance', ...rows, '--audience', `127.0.0.1:${port}`);
  const answer = await fetch(`${base}/iam/v2/groups`, {
    method: 'POST', body: JSON.stringify({ name: 'objects' }),
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
  });
  const repo = `${(await answer.json()).uid}/app`;

  // A layer of more than one part, in one body and in chunks that go through two servers in turn.
  const large = randomBytes(20 << 20);
  check('a layer of several parts', (await pushed(repo, large)).status === 201);
  const back = await send('GET', `/v2/${repo}/blobs/${digest(large)}`);
  check('comes back as it was', back.body.equals(large));
  const range = await send('GET', `/v2/${repo}/blobs/${digest(large)}`, { headers: { range: 'bytes=9000000-9000009' } });
  check('and in part', range.status === 206 && range.body.equals(large.subarray(9000000, 9000010)));
  let second = await server('bowline2', otherPort, otherAdmin);
  const chunked = randomBytes(3 << 20);
  const at = await begun(repo);
  for (let n = 0; n < 3; n += 1) {
    const part = chunked.subarray(n << 20, (n + 1) << 20);
    const headers = { 'content-range': `${n << 20}-${((n + 1) << 20) - 1}` };
    const taken = await send('PATCH', at, { body: part, headers, at: n % 2 ? other : base });
    check(`chunk ${n} at server ${n % 2}`, taken.status === 202 && taken.headers.get('range') === `0-${((n + 1) << 20) - 1}`, `${taken.status} ${taken.body}`);
  }
  const early = await send('PATCH', at, { body: 'x', headers: { 'content-range': '5-5' }, at: other });
  check('a chunk out of order is told where to go on', early.status === 416 && early.headers.get('range') === `0-${chunked.length - 1}`);
  const done = await send('PUT', `${at}?digest=${digest(chunked)}`, { at: other });
  check('chunks of two servers become one blob', done.status === 201, `${done.status} ${done.body}`);
  check('which is whole', (await send('GET', `/v2/${repo}/blobs/${digest(chunked)}`)).body.equals(chunked));
  await stop(second);

  const wrong = await send('PUT', `${await begun(repo)}?digest=${digest('other')}`, { body: 'something' });
  check('another digest is refused', wrong.status === 400 && String(wrong.body).includes('DIGEST_INVALID'));

  // The store goes away.
  check('an image is kept', (await named(repo, 'v1', large)).status === 201);
  const open = await begun(repo);
  await send('PATCH', open, { body: 'half of it, ' });
  await stop(store, 'SIGKILL');
  const [push, pull] = await Promise.all([
    send('PATCH', open, { body: 'lost', headers: {} }), send('GET', `/v2/${repo}/blobs/${digest(large)}`),
  ]);
  for (const [what, refused] of [['a push', push], ['a pull', pull]]) {
    check(`${what} is told to come again while the store is away`, refused.status === 503 && refused.headers.get('retry-after') !== null, `${refused.status} ${refused.body}`);
    check('and nothing of what is inside', !/127\.0\.0\.1|some\/where|AWS/.test(String(refused.body)), String(refused.body));
  }
  check('manifests are pulled meanwhile', (await send('GET', `/v2/${repo}/manifests/v1`)).status === 200);
  store = await gateway();
  const whole = Buffer.from('half of it, and the rest');
  check('the upload goes on', (await send('PATCH', open, { body: whole.subarray(12) })).status === 202);
  check('to its end', (await send('PUT', `${open}?digest=${digest(whole)}`)).status === 201);
  check('and blobs are pulled', (await send('GET', `/v2/${repo}/blobs/${digest(large)}`)).body.equals(large));

  // Killed in the middle of a body.
  const cut = await begun(repo);
  const slow = new ReadableStream({
    async pull(controller) {
      controller.enqueue(randomBytes(1 << 20));
      await pause(20);
    },
  });
  const lost = send('PATCH', cut, { body: slow }).then(() => 'answered', () => 'broken');
  await pause(1500);
  await stop(first, 'SIGKILL');
  check('a push breaks off with its server', await lost === 'broken');
  first = await server('bowline', port, admin);
  const empty = await send('GET', cut);
  check('what was not acknowledged is not there', empty.status === 204 && empty.headers.get('range') === '0-0');

  // Collection takes what is nobody's, and nothing else.
  const before = objects().length;
  await pause(2000);
  const dry = bowline('registry', 'gc', ...storage, '--grace', '1s', '--dry-run');
  check('a dry run takes nothing', objects().length === before && dry.includes('would go'), dry);
  const gone = bowline('registry', 'gc', ...storage, '--grace', '1s');
  check('collection', gone.includes('gone') && objects().length < before, gone);
  check('the image is still whole', (await send('GET', `/v2/${repo}/blobs/${digest(large)}`)).body.equals(large));
  check('what no manifest named is gone', (await send('GET', `/v2/${repo}/blobs/${digest(chunked)}`)).status === 404);
  const verified = bowline('registry', 'verify', ...storage);
  check('verification', / 0 bad$/.test(verified), verified);
  const blobs = Number(/(\d+) blobs verified/.exec(verified)[1]);
  check('nothing else is left in the bucket', objects().length === blobs, `${objects().length} objects, ${blobs} blobs`);
  const [victim] = objects().filter((path) => statSync(path).size === large.length);
  const bytes = readFileSync(victim);
  bytes[5] ^= 1;
  writeFileSync(victim, bytes);
  let bad = '';
  try { bowline('registry', 'verify', ...storage); } catch (error) { bad = String(error.stdout); }
  check('a damaged object is found', bad.includes(`${digest(large)} is damaged`) && bad.includes('object some/where/blobs/'), bad);

  // Another database may not have this bucket, and a bucket that is not there is said to be missing.
  const refused = (...args) => {
    try { return execFileSync(BOWLINE, ['serve', '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0', ...args], { encoding: 'utf8', stdio: 'pipe', timeout: 30000, env: { ...process.env, ...aws } }); } catch (error) { return String(error.stderr); }
  };
  const foreign = refused('--data-dir', join(work, 'foreign'), '--blob-url', 's3://blobs/some/where');
  check('the blobs of another database are refused', foreign.includes('has the blobs of another database'), foreign);
  const absent = refused('--data-dir', join(work, 'absent'), '--blob-url', 's3://nowhere');
  check('a bucket that is not there is named', absent.includes('blobs cannot be kept in s3://nowhere'), absent);
  await stop(first);

  bytes[5] ^= 1;
  writeFileSync(victim, bytes);
  // The server that was killed is taken for a running one until then.
  await pause(10000);
  await moves({
    work, bowline, stop, layer: large, key: join(work, 'key'), database: url.href, suite: registrySuite,
    serve: (...options) => server('bowline', port, admin, options),
    pull: async (tag = 'v1') => {
      const manifest = JSON.parse((await send('GET', `/v2/${repo}/manifests/${tag}`)).body);
      return (await send('GET', `/v2/${repo}/blobs/${manifest.layers[0].digest}`)).body;
    },
    push: (tag) => named(repo, tag, large),
    createDatabase: (name) => createDatabase(`${database}_${name}`).href,
  });
  await stop(store);
}

try {
  await suite();
  console.log(`  ${checks()} checks`);
} catch (error) {
  console.error(error.stack ?? error);
  if (process.env.KEEP) console.error(`kept ${work}`);
  process.exitCode = 1;
} finally {
  await Promise.all([...running].map((child) => stop(child, 'SIGKILL')));
  for (const name of databases) psql(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  if (!process.env.KEEP) rmSync(work, { recursive: true, force: true });
}
process.exit();
