// An organization that flows change, on the suite's server or on a second one, and lines of a shell that name its resources.
import { execFile, spawn, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';

const { BASE_URL, OPERATOR_TOKEN, DATA_DIR, BOWLINE, GRPCURL } = process.env;
const run = promisify(execFile);
const sha256 = (bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

/** The server that the suite runs against. */
export const firstServer = { url: BASE_URL, data: DATA_DIR, token: OPERATOR_TOKEN };

/** Numbers of ports that are free now. */
async function ports(count) {
  const open = await Promise.all(Array.from({ length: count }, () => new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => done(server));
  })));
  const numbers = open.map((server) => server.address().port);
  await Promise.all(open.map((server) => new Promise((done) => { server.close(done); })));
  return numbers;
}

/** Starts another server in a directory; `stop` ends it. */
export async function secondServer(directory) {
  const [port, admin] = await ports(2);
  const [data, config] = [path.join(directory, 'data'), path.join(directory, 'bowline.toml')];
  writeFileSync(config, '[[terms]]\nid = "terms-1"\nlabel = "Terms"\nurl = "https://operator.example/terms-1"\n');
  const child = spawn(BOWLINE, ['serve', '--config', config, '--data-dir', data, '--listen', `127.0.0.1:${port}`,
    '--admin-listen', `127.0.0.1:${admin}`], { stdio: 'ignore' });
  process.once('exit', () => child.kill());
  const ended = new Promise((done) => { child.once('exit', done); });
  const stop = async () => { child.kill(); await ended; };
  for (let tries = 0; ; tries += 1) {
    const answer = await fetch(`http://127.0.0.1:${admin}/readyz`).catch(() => null);
    if (answer?.ok) break;
    if (tries === 300 || child.exitCode !== null) { await stop(); throw new Error('the second server did not become ready'); }
    await new Promise((done) => { setTimeout(done, 100); });
  }
  const token = execFileSync(BOWLINE, ['operator', 'token', '--reason', 'flows', '--data-dir', data], { encoding: 'utf8' }).trim();
  const bin = path.join(directory, 'bin');
  mkdirSync(bin);
  symlinkSync(path.resolve(BOWLINE), path.join(bin, 'bowline'));
  symlinkSync(path.resolve(GRPCURL), path.join(bin, 'grpcurl'));
  const shellOf = (env) => shell({ PATH: `${bin}:/usr/bin:/bin`, HOME: directory, ...env });
  return { url: `http://127.0.0.1:${port}`, data, token, shellOf, shell: shellOf({ BOWLINE_TOKEN: token }), stop };
}

/** Runs a line as it was copied from a page, in a shell where the command line is signed in. */
function shell(env) {
  return async (line) => {
    const { stdout } = await run('sh', ['-c', line], { env }).catch((error) => {
      throw new Error(`the shell failed: ${line}\n${error.stdout}${error.stderr}`);
    });
    return stdout;
  };
}

export class World {
  /** The organization of one kind of use; `mark` is a word that stands for it in names. */
  constructor(server, mark) {
    Object.assign(this, { server, mark, ids: {} });
  }

  async answer(verb, where, body) {
    const headers = { authorization: `Bearer ${this.server.token}`, 'content-type': 'application/json' };
    return fetch(this.server.url + where, { method: verb, headers, body: body && JSON.stringify(body) });
  }

  async call(verb, where, body) {
    const answer = await this.answer(verb, where, body);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${verb} ${where}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : {};
  }

  get(where) { return this.call('GET', where); }

  post(where, body) { return this.call('POST', where, body); }

  async status(where) { return (await this.answer('GET', where)).status; }

  /** What every organization of the flows has. */
  async seed() {
    const { ids } = this;
    ids.org = (await this.post('/iam/v2/groups', { name: `flows ${this.mark}` })).uid;
    for (const role of (await this.get('/iam/v2/roles?page_size=200')).roles) ids[`role ${role.name}`] = role.uid;
    ids.team = await this.group('team');
    ids.robot = await this.identity('robot');
    return this;
  }

  async group(name) {
    return (await this.post(`/iam/v2/groups/${this.ids.org}`, { name })).uid;
  }

  async identity(name) {
    const claimMatch = { issuer: 'https://issuer.example', subject: `subject of ${name}` };
    return (await this.post(`/iam/v2/identities/${this.ids.org}`, { name, claimMatch })).uid;
  }

  /** A repository with an image for each text, and its first tags. */
  async repo(name, images = {}) {
    const repo = (await this.post(`/registry/v2/repos/${this.ids.org}`, { name })).uid;
    for (const [tag, text] of Object.entries(images)) await this.push(repo, tag, text);
    return repo;
  }

  async push(repo, tag, text) {
    const { url, token } = this.server;
    this.registry ??= (await (await fetch(`${url}/sts/exchange?aud=${new URL(url).host}`, { headers: { authorization: `Bearer ${token}` } })).json()).token;
    const send = async (method, where, body, type) => {
      const headers = { authorization: `Bearer ${this.registry}`, 'content-type': type };
      const reply = await fetch(`${url}/v2/${repo}/${where}`, { method, body, headers });
      if (!reply.ok) throw new Error(`${method} ${where}: ${reply.status} ${await reply.text()}`);
    };
    const blob = async (content, mediaType) => {
      const digest = sha256(content);
      await send('POST', `blobs/uploads/?digest=${digest}`, content, 'application/octet-stream');
      return { mediaType, size: content.length, digest };
    };
    const layer = await blob(Buffer.from(text), 'application/vnd.oci.image.layer.v1.tar');
    const document = { architecture: 'amd64', os: 'linux', rootfs: { type: 'layers', diff_ids: [layer.digest] } };
    const config = await blob(Buffer.from(JSON.stringify(document)), 'application/vnd.oci.image.config.v1+json');
    const manifest = JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST, config, layers: [layer] });
    await send('PUT', `manifests/${tag}`, manifest, MANIFEST);
    return sha256(Buffer.from(manifest));
  }
}

/** A line of one world for another one: the same resources by name, at the other server. */
export function translated(line, from, to) {
  const words = new Map([[from.mark, to.mark], [new URL(from.server.url).host, new URL(to.server.url).host]]);
  for (const [name, uid] of Object.entries(from.ids).filter(([known]) => to.ids[known])) {
    const others = to.ids[name].split('/');
    uid.split('/').forEach((part, at) => words.set(part, others[at]));
  }
  const all = [...words.keys()].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(all.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'g');
  return line.replace(pattern, (word) => words.get(word));
}
