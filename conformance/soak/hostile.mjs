// The hostile clients of the soak, each at its own pace. Prints the number of responses of each kind, every second.
//
//   BASE TOKEN VIEWER FILLER PUSHER ORGANIZATION REPO node hostile.mjs
import http from 'node:http';
import http2 from 'node:http2';
import net from 'node:net';
import { gzipSync } from 'node:zlib';

const { BASE, TOKEN, VIEWER, FILLER, PUSHER, ORGANIZATION, REPO } = process.env;
const { hostname, port } = new URL(BASE);
const counts = {};
const count = (what, outcome) => { counts[`${what} ${outcome}`] = (counts[`${what} ${outcome}`] ?? 0) + 1; };
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const agent = new http.Agent({ keepAlive: true, maxSockets: 32 });

function rest(what, token, method, path, body, headers = {}) {
  return new Promise((done) => {
    const request = http.request(BASE + path, { agent, method, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers } }, (response) => {
      response.resume();
      response.on('end', () => { count(what, response.statusCode); done(response); });
      response.on('error', () => done());
    });
    request.setTimeout(60_000, () => request.destroy(new Error('late')));
    request.on('error', (error) => { count(what, error.code ?? error.message); done(); });
    request.end(body);
  });
}

/** One gRPC call with a message as it is, compressed or not. */
function grpc(what, token, path, message, compressed) {
  return new Promise((done) => {
    const session = http2.connect(BASE);
    session.on('error', (error) => { count(what, error.code); done(); });
    const stream = session.request({
      ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers', authorization: `Bearer ${token}`, ...(compressed ? { 'grpc-encoding': 'gzip' } : {}),
    });
    let status;
    stream.on('response', (headers) => { status ??= headers['grpc-status']; });
    stream.on('trailers', (headers) => { status ??= headers['grpc-status']; });
    stream.on('error', () => {});
    let isOver = false;
    const over = () => {
      if (isOver) return;
      isOver = true;
      count(what, status ?? 'ended');
      session.destroy();
      done();
    };
    // Node tells nothing but the end where a response comes before everything was sent.
    stream.on('end', over);
    stream.on('close', over);
    stream.resume();
    const head = Buffer.alloc(5);
    head[0] = compressed ? 1 : 0;
    head.writeUInt32BE(message.length, 1);
    stream.write(head);
    stream.end(message);
  });
}

/** Does something again and again, with a pause in between. */
async function repeat(ms, act) {
  for (;;) {
    await act();
    await pause(ms);
  }
}

// ---- lists and patterns ---------------------------------------------------------------

const patterns = Array.from({ length: 15_000 }, (_, n) => `v[0-9]{1,9}\\.(a|b){1,9}-${n}`);
const policy = JSON.stringify({ immutableTagPatterns: patterns });
repeat(500, () => rest('policy', TOKEN, 'PATCH', `/registrypolicies/v1/groups/${ORGANIZATION}`, policy));
const provider = JSON.stringify({ name: 'login', defaultRole: ORGANIZATION, oidc: { issuer: 'https://login.example.com', clientId: 'c', clientSecret: 's', additionalScopes: Array(40_000).fill('') } });
repeat(500, () => rest('provider', TOKEN, 'POST', `/iam/v2/identityProviders/${ORGANIZATION}`, provider));
const kept = Array.from({ length: 20 }, (_, n) => `retention.keepPatterns=(a%7Cb)%7B1,9%7D${n}`).join('&');
repeat(100, () => rest('preview', VIEWER, 'GET', `/registrypolicies/v1/repos/${REPO}:previewRetention?${kept}`));

// ---- silence ------------------------------------------------------------------------------

const SAID = ['', 'PRI * HTTP/2.0\r\n', 'GET / HTTP/1.1\r\nhost: a\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'];
for (let n = 0; n < 600; n += 1) {
  // From other addresses than the good client's.
  const localAddress = `127.0.0.${2 + (n % 8)}`;
  (async () => {
    await pause(n * 20);
    await repeat(1000, () => new Promise((done) => {
      const socket = net.connect({ host: hostname, port: Number(port), localAddress }, () => socket.write(SAID[n % SAID.length]));
      socket.on('error', () => {});
      socket.on('close', () => { count('silent', 'ended'); done(); });
      socket.resume();
    }));
  })();
}

// ---- calls without a token ------------------------------------------------------------------

function held(path) {
  return new Promise((done) => {
    const session = http2.connect(BASE, { localAddress: '127.0.0.3' });
    const streams = Array.from({ length: 50 }, () => {
      const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' });
      stream.on('response', (headers) => count('stream', headers['grpc-status'] ?? 'open'));
      stream.on('error', () => {});
      stream.resume();
      return stream;
    });
    session.on('error', (error) => count('stream', error.code));
    session.on('close', done);
    setTimeout(() => { streams.forEach((stream) => stream.close()); session.close(); }, 20_000);
  });
}
for (let n = 0; n < 5; n += 1) {
  repeat(2000, () => held('/grpc.health.v1.Health/Watch'));
  repeat(2000, () => held('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'));
}
repeat(500, () => rest('query', 'none', 'POST', '/osv/v1/querybatch', JSON.stringify({ queries: Array(1000).fill({ package: { name: 'a', ecosystem: 'PyPI' } }) })));

// ---- sizes ----------------------------------------------------------------------------------------

const CREATE = '/chainguard.platform.registry.v2.ReposService/CreateRepo';
const bomb = gzipSync(Buffer.alloc(1 << 30), { level: 9 });
repeat(1000, () => grpc('bomb', TOKEN, CREATE, bomb, true));
repeat(2000, () => grpc('large', TOKEN, CREATE, Buffer.alloc(100 << 20), false));
repeat(1000, () => grpc('denied', VIEWER, CREATE, Buffer.alloc(4_000_000), false));
const long = JSON.stringify({ name: 'a', description: 'd'.repeat(4_000_000) });
repeat(1000, () => rest('long', TOKEN, 'POST', `/registry/v2/repos/${ORGANIZATION}`, long));
for (let n = 0; n < 20; n += 1) {
  // Bodies that never end, of a caller whose other requests are not to be refused for them.
  repeat(1000, () => new Promise((done) => {
    const socket = net.connect({ host: hostname, port: Number(port), localAddress: '127.0.0.4' }, () => {
      socket.write(`POST /registry/v2/repos/${ORGANIZATION} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${FILLER}\r\ncontent-length: 4000000\r\n\r\n`);
      socket.write(Buffer.alloc(3_500_000, ' '));
    });
    socket.on('error', () => {});
    socket.on('close', () => { count('endless', 'ended'); done(); });
    socket.resume();
  }));
}

// ---- the registry -----------------------------------------------------------------------------------

repeat(50, async () => {
  const begun = await rest('upload', PUSHER, 'POST', `/v2/${ORGANIZATION}/app/blobs/uploads/`, undefined);
  const location = begun?.headers.location;
  if (location) await rest('chunk', PUSHER, 'PATCH', location.replace(BASE, ''), Buffer.alloc(64 << 10), { 'content-type': 'application/octet-stream' });
});
repeat(20, () => rest('pull', PUSHER, 'GET', `/v2/${ORGANIZATION}/app/manifests/latest`, undefined));

setInterval(() => process.stdout.write(`${JSON.stringify(counts)}\n`), 1000);
