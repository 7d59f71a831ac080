// The servers of a run, each in a process of its own: Bowline, devpi-server, Verdaccio, nginx and their upstream.
//
// Each is `{ name, pid, python, npm, headers }`: the addresses of its index and registry where it has them, and the headers
// that requests need.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, openSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** The administrator of devpi. */
const USER = 'root';
const START_TIME = 60_000;
/** Pages stay fresh for so long at the peers, so that none of them asks the upstream again while hits are measured. */
const FRESH_MINUTES = 60;

export class Servers {
  #running = [];

  constructor(directory, bowline, programs) {
    this.directory = directory;
    this.binary = bowline;
    this.programs = programs;
    this.content = join(directory, 'content');
  }

  /** Ends them in the opposite order, and waits until their files are closed. */
  async stop() {
    for (const running of this.#running.reverse()) {
      const ended = new Promise((done) => running.once('exit', done));
      if (running.exitCode === null && running.kill()) await ended;
    }
    this.#running = [];
  }

  /** Starts a program that prints to a file of its own, and waits until it answers at an address. */
  async #start(name, ready, command, ...args) {
    const log = openSync(join(this.directory, `${name}.log`), 'a');
    const running = spawn(command, args, { cwd: this.directory, stdio: ['ignore', log, log], env: { ...process.env, HOME: this.directory } });
    this.#running.push(running);
    const until = performance.now() + START_TIME;
    while (!(await fetch(ready).then((reply) => reply.status < 500, () => false))) {
      if (running.exitCode !== null || performance.now() > until) throw new Error(`${name} does not start; see ${name}.log in ${this.directory}`);
      await sleep(50);
    }
    return running.pid;
  }

  async upstream() {
    const base = `http://127.0.0.1:${await freePort()}`;
    const script = fileURLToPath(new URL('upstream.mjs', import.meta.url));
    const pid = await this.#start('upstream', `${base}/-/count/`, process.execPath, script, this.content, new URL(base).port);
    this.up = { name: 'upstream', pid, base, python: `${base}/python/`, npm: `${base}/npm/`, headers: {} };
    return this.up;
  }

  /** How often the upstream was asked for a path. */
  async count(path) {
    return Number(await (await fetch(`${this.up.base}/-/count${path}`)).text());
  }

  /** A static server of the same files: the least that any server of them takes. */
  async nginx() {
    const port = await freePort();
    writeFileSync(join(this.directory, 'nginx.conf'), nginxConfiguration(this.directory, this.content, port));
    const base = `http://127.0.0.1:${port}`;
    const pid = await this.#start('nginx', base, 'nginx', '-p', this.directory, '-e', join(this.directory, 'nginx.log'), '-c', join(this.directory, 'nginx.conf'));
    return { name: 'nginx', pid, base, python: `${base}/python/`, npm: `${base}/npm/`, headers: {} };
  }

  /** An organization with both upstreams, read with a pull token, as installers have it. */
  async bowline() {
    const [base, admin] = [`http://127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
    const storage = ['--data-dir', join(this.directory, 'bowline')];
    const options = ['--log', 'warn', '--rate-limit-address', '0', '--base-url', base, '--allow-private-addresses', '127.0.0.0/8'];
    const pid = await this.#start('bowline-server', `http://${admin}/readyz`, this.binary, 'serve', ...storage, '--listen', new URL(base).host, '--admin-listen', admin, ...options);
    const run = (...args) => execFileSync(this.binary, args, { encoding: 'utf8', env: { ...process.env, HOME: this.directory } }).trim();
    const operator = run('operator', 'token', '--reason', 'a measurement', ...storage);
    const organization = (await call(base, operator, '/iam/v2/groups', { name: 'bench' })).uid;
    for (const [ecosystem, url] of [['PYTHON', `${this.up.python}simple/`], ['JAVASCRIPT', this.up.npm]]) {
      await call(base, operator, `/packageupstreams/v1/organizations/${organization}:setUpstream`, { upstream: { name: ecosystem.toLowerCase(), ecosystem, url } });
    }
    const tokenFile = join(this.directory, 'operator.token');
    writeFileSync(tokenFile, operator, { mode: 0o600 });
    const { identity_id: user, token } = JSON.parse(run('auth', 'pull-token', 'create', '--parent', organization, '--repository', 'python,javascript', '--api', base, '--token-file', tokenFile, '-o', 'json'));
    // pip takes no slash in user names.
    const credential = `${user.replace('/', '_')}:${token}`;
    const encoded = Buffer.from(credential).toString('base64');
    return {
      name: 'Bowline', pid, python: `${base}/libraries/python/`, npm: `${base}/libraries/javascript/`,
      headers: { authorization: `Basic ${encoded}` }, credential, npmAccount: `_auth=${encoded}`,
    };
  }

  /** A mirror of the index. Its pages are for anyone: it has no right to read. */
  async devpi() {
    const base = `http://127.0.0.1:${await freePort()}`;
    const storage = ['--serverdir', join(this.directory, 'devpi')];
    execFileSync(this.programs.devpiInit, [...storage, '--no-root-pypi', '--root-passwd', 'bench'], { stdio: 'ignore' });
    const pid = await this.#start('devpi', `${base}/+api`, this.programs.devpi, ...storage, '--port', new URL(base).port, '--host', '127.0.0.1');
    const session = await send(`${base}/+login`, 'POST', {}, { user: USER, password: 'bench' });
    const authentication = Buffer.from(`${USER}:${session.result.password}`).toString('base64');
    const mirror = { type: 'mirror', mirror_url: `${this.up.python}simple/`, mirror_cache_expiry: FRESH_MINUTES * 60 };
    const index = `${base}/${USER}/mirror`;
    await send(index, 'PUT', { 'x-devpi-auth': authentication }, mirror);
    // Its index is at `+simple/`.
    return { name: 'devpi', pid, python: `${index}/+`, headers: {} };
  }

  /** An uplink, read by a user with a signed token: its other kind of token costs a hash of the password in each request. */
  async verdaccio() {
    const base = `http://127.0.0.1:${await freePort()}`;
    const directory = join(this.directory, 'verdaccio');
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'config.yaml'), verdaccioConfiguration(this.up.npm));
    const pid = await this.#start('verdaccio', `${base}/-/ping`, ...this.programs.verdaccio, '--config', join(directory, 'config.yaml'), '--listen', new URL(base).host);
    const { token } = await send(`${base}/-/user/org.couchdb.user:bench`, 'PUT', {}, { name: 'bench', password: 'a long password' });
    return { name: 'Verdaccio', pid, npm: `${base}/`, headers: { authorization: `Bearer ${token}` }, npmAccount: `_authToken=${token}` };
  }
}

async function freePort() {
  const one = createServer();
  await new Promise((done) => one.listen(0, '127.0.0.1', done));
  const { port } = one.address();
  await new Promise((done) => one.close(done));
  return port;
}

async function send(url, method, headers, body) {
  const reply = await fetch(url, { method, headers: { 'content-type': 'application/json', accept: 'application/json', ...headers }, body: JSON.stringify(body) });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`${method} ${url}: ${reply.status} ${text}`);
  return JSON.parse(text);
}

const call = (base, token, path, body) => send(base + path, 'POST', { authorization: `Bearer ${token}` }, body);

function nginxConfiguration(directory, content, port) {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `  ${kind}_temp_path ${directory}/nginx-${kind};`);
  // Workers of a root's nginx belong to a user who may not read the directory.
  const user = process.getuid() === 0 ? 'user root;\n' : '';
  return `${user}daemon off;
worker_processes auto;
pid ${directory}/nginx.pid;
events { worker_connections 1024; }
http {
${paths.join('\n')}
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  open_file_cache max=10000 inactive=1h;
  open_file_cache_valid 1h;
  types { application/octet-stream whl tgz metadata; }
  server {
    listen 127.0.0.1:${port};
    root ${content};
    location /python/simple/ { index index.json; types { application/vnd.pypi.simple.v1+json json; } }
    location ~ ^/npm/[^/]+$ { default_type application/json; try_files $uri/document.json =404; }
  }
}
`;
}

const verdaccioConfiguration = (upstream) => `storage: ./storage
auth:
  htpasswd: { file: ./htpasswd }
security:
  api:
    legacy: false
    jwt: { sign: { expiresIn: 1d } }
uplinks:
  up: { url: ${upstream}, maxage: ${FRESH_MINUTES}m, cache: true }
packages:
  '**': { access: $authenticated, publish: $authenticated, proxy: up }
web: { enable: false }
log: { type: stdout, format: pretty, level: error }
`;
