#!/usr/bin/env node
// Measures a cold layer: how long after the first byte of the upstream a client has its first byte, and the whole layer
// beside one that is fetched from the upstream itself.
//
//   bench/cold.mjs SERVER [MIB [ROUNDS]]
//   bench/cold.mjs target/release/bowline 1024 5
//
// The upstream is a registry in this process, on loopback; each round has a layer of its own. Prints the slowest and the
// median of the rounds, and the most memory that the server had.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import { Agent, createServer as createSecureServer, get as getSecurely } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [server, mib = '1024', rounds = '5'] = process.argv.slice(2);
if (!server) {
  console.error('usage: bench/cold.mjs SERVER [MIB [ROUNDS]]');
  process.exit(2);
}
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const MEBIBYTE = 1 << 20;
/** Bytes that the upstream writes at once: both ends share this process, and a longer write would delay the other one. */
const CHUNK = 1 << 16;
const directory = mkdtempSync(join(tmpdir(), 'cold.'));
const sha256 = (bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

// ---- the upstream ------------------------------------------------------------------------------------

const config = Buffer.from('{"os":"linux","architecture":"amd64"}');
const blobs = new Map([[sha256(config), { bytes: config }]]);
const manifests = new Map();
/** When the first byte of a layer was sent. */
const sent = new Map();

function layer(round) {
  const size = Number(mib) * MEBIBYTE;
  const hash = createHash('sha256');
  const chunk = Buffer.alloc(CHUNK, `round ${round} `);
  for (let n = 0; n < size / CHUNK; n += 1) hash.update(chunk);
  const digest = `sha256:${hash.digest('hex')}`;
  blobs.set(digest, { chunk, size });
  const manifest = Buffer.from(JSON.stringify({
    schemaVersion: 2, mediaType: MANIFEST,
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: sha256(config), size: config.length },
    layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', digest, size }],
  }));
  for (const name of [`r${round}`, sha256(manifest)]) manifests.set(name, manifest);
  return digest;
}

/** A certificate authority of this run, and a certificate of the upstream: upstreams are https. */
function certificate() {
  const openssl = (...args) => execFileSync('openssl', args, { cwd: directory, stdio: ['ignore', 'pipe', 'ignore'] });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=cold');
  openssl('req', ...key, '-keyout', 'key.pem', '-out', 'request.pem', '-subj', '/CN=127.0.0.1');
  writeFileSync(join(directory, 'extensions'), 'subjectAltName=IP:127.0.0.1\n');
  openssl('x509', '-req', '-in', 'request.pem', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-out', 'cert.pem', '-days', '2', '-extfile', 'extensions');
  return { key: readFileSync(join(directory, 'key.pem')), cert: readFileSync(join(directory, 'cert.pem')) };
}

const upstream = createSecureServer(certificate(), (request, response) => {
  const name = request.url.split('/').pop();
  const manifest = manifests.get(name);
  const blob = blobs.get(name);
  if (request.url === '/v2/') return response.end('{}');
  if (manifest) {
    response.writeHead(200, { 'content-type': MANIFEST, 'content-length': manifest.length, 'docker-content-digest': sha256(manifest) });
    return response.end(request.method === 'HEAD' ? undefined : manifest);
  }
  if (!blob) return response.writeHead(404).end();
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': blob.size ?? blob.bytes.length });
  if (request.method === 'HEAD') return response.end();
  if (blob.bytes) return response.end(blob.bytes);
  let left = blob.size / CHUNK;
  sent.set(name, performance.now());
  const write = () => {
    while (left > 0) {
      left -= 1;
      if (!response.write(blob.chunk) && left > 0) return response.once('drain', write);
    }
    response.end();
  };
  write();
});

// ---- the server --------------------------------------------------------------------------------------

const listening = (of) => new Promise((done) => of.listen(0, '127.0.0.1', () => done(of.address().port)));
const free = async () => {
  const one = createServer();
  const port = await listening(one);
  await new Promise((done) => one.close(done));
  return port;
};
const [to, port, admin] = [await listening(upstream), await free(), await free()];
const base = `http://127.0.0.1:${port}`;
const storage = ['--data-dir', join(directory, 'data')];
const running = spawn(server, ['serve', ...storage, '--listen', `127.0.0.1:${port}`, '--admin-listen', `127.0.0.1:${admin}`, '--base-url', base], { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, BOWLINE_LOG: 'warn', SSL_CERT_FILE: join(directory, 'ca.pem') } });
while (!(await fetch(`http://127.0.0.1:${admin}/readyz`).then((reply) => reply.ok, () => false))) await new Promise((done) => setTimeout(done, 20));
const operator = execFileSync(server, ['operator', 'token', '--reason', 'a measurement', ...storage], { encoding: 'utf8' }).trim();

async function call(method, path, body) {
  const reply = await fetch(base + path, { method, body: body && JSON.stringify(body), headers: { authorization: `Bearer ${operator}`, 'content-type': 'application/json' } });
  if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${await reply.text()}`);
  return reply.json();
}

const organization = (await call('POST', '/iam/v2/groups', { name: 'cold' })).uid;
await call('POST', `/registry/v2/repos/${organization}`, { name: 'app' });
await call('PATCH', `/registrypolicies/v1/groups/${organization}`, { upstream: { url: `https://127.0.0.1:${to}/base` } });
const { token } = await call('GET', `/sts/exchange?aud=127.0.0.1:${port}`);

const trusting = new Agent({ ca: readFileSync(join(directory, 'ca.pem')) });

/** Reads to the end; the times of the first byte and of the end. */
function read(url, headers) {
  return new Promise((done, fail) => {
    const agent = url.startsWith('https') ? trusting : undefined;
    (agent ? getSecurely : get)(url, { headers, agent }, (reply) => {
      let [first, bytes] = [0, 0];
      if (reply.statusCode !== 200) fail(new Error(`${url}: ${reply.statusCode}`));
      reply.on('data', (part) => {
        first ||= performance.now();
        bytes += part.length;
      });
      reply.on('error', fail);
      reply.on('end', () => done({ first, bytes, end: performance.now() }));
    }).on('error', fail);
  });
}

const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
const [delays, wholes, directs] = [[], [], []];
for (let round = 0; round < Number(rounds); round += 1) {
  const digest = layer(round);
  const authorization = `Bearer ${token}`;
  await read(`${base}/v2/${organization}/app/manifests/r${round}`, { authorization, accept: MANIFEST });
  const begun = performance.now();
  const cold = await read(`${base}/v2/${organization}/app/blobs/${digest}`, { authorization });
  if (cold.bytes !== Number(mib) * MEBIBYTE) throw new Error(`${cold.bytes} bytes came`);
  delays.push(cold.first - sent.get(digest));
  wholes.push(cold.end - begun);
  const again = performance.now();
  directs.push((await read(`https://127.0.0.1:${to}/v2/base/app/blobs/${digest}`, {})).end - again);
}
const memory = readFileSync(`/proc/${running.pid}/status`, 'utf8').match(/VmHWM:\s+(\d+)/)[1] / 1024;
console.log(`first byte after the upstream's: median ${median(delays).toFixed(2)} ms, slowest ${Math.max(...delays).toFixed(2)} ms (<= 5 ms)`);
console.log(`whole layer of ${mib} MiB: ${(median(wholes) / 1000).toFixed(2)} s; from the upstream itself ${(median(directs) / 1000).toFixed(2)} s`);
console.log(`memory of the server at most ${memory.toFixed(0)} MiB`);
running.kill();
await new Promise((done) => running.once('exit', done));
rmSync(directory, { recursive: true, force: true });
upstream.closeAllConnections();
upstream.close();
