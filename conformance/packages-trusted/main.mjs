// Trusted publishing with the clients that have it: a CI system signs a token, and uv and npm publish with it. What they show
// where something is refused is a golden table.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   PROVIDER                   provider.json of the identity provider
//   PYTHON, JAVASCRIPT         directories with the clients, as the suites of their ecosystems have them
//   UPDATE_GOLDEN=1            write the table of what each client prints again
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { call, check, checks, owned } from '../lib.mjs';
import { secured } from '../tls.mjs';

const { BASE_URL, JAVASCRIPT, PYTHON, UPDATE_GOLDEN } = process.env;
const here = dirname(fileURLToPath(import.meta.url));
const golden = join(here, 'golden.txt');
const work = mkdtempSync(join(tmpdir(), 'trusted.'));
const servers = [];
const rows = [];
let directories = 0;

/** Runs a program as a job of a CI system does that signs the token, while this process serves. */
function run(command, args, job, cwd = work) {
  const ci = { CI: 'true', GITHUB_ACTIONS: 'true', ACTIONS_ID_TOKEN_REQUEST_URL: `${job.url}/token?version=1`, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of-the-job' };
  const env = { HOME: work, PATH: process.env.PATH, COLUMNS: '1000', NO_COLOR: '1', UV_NO_CONFIG: '1', SSL_CERT_FILE: tls.cert, ...ci };
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, cwd, timeout: 120_000 });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (text += part));
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, text }));
  });
}

/** What signs tokens for jobs: it notes the audiences, and always gives the same token. */
async function signer(token) {
  const audiences = [];
  const server = createServer((incoming, outgoing) => {
    audiences.push(new URL(incoming.url, 'http://signer').searchParams.get('audience'));
    const isJob = incoming.headers.authorization?.endsWith(' of-the-job');
    outgoing.writeHead(isJob ? 200 : 401, { 'content-type': 'application/json' }).end(JSON.stringify({ value: token }));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  return { audiences, url: `http://127.0.0.1:${server.address().port}` };
}

/** Publishes a version by uv at a group. */
async function uv(job, group, version) {
  const directory = join(work, `dist-${(directories += 1)}`);
  const made = await run('python3', [join(here, '../packages/make.py'), directory, 'bwl-trusted', version, 'License-Expression: MIT'], job);
  if (made.status !== 0) throw new Error(made.text);
  const files = readdirSync(directory).map((file) => join(directory, file));
  const url = `${tls.url}/libraries/python/${group && `~${group}/`}legacy/`;
  return run(join(PYTHON, 'venv/bin/uv'), ['publish', '--publish-url', url, '--trusted-publishing', 'always', ...files], job);
}

/** Publishes a version by npm at a group. */
function npm(job, group, version) {
  const directory = join(work, `package-${(directories += 1)}`);
  mkdirSync(directory);
  const manifest = { name: 'bwl-trusted', version, license: 'MIT', publishConfig: { registry: `${tls.url}/libraries/javascript/${group && `~${group}/`}` } };
  writeFileSync(join(directory, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(directory, '.npmrc'), `cafile=${tls.cert}\nfetch-retries=0\naudit=false\nfund=false\nupdate-notifier=false\n`);
  return run('node', [join(JAVASCRIPT, 'node_modules/npm12/bin/npm-cli.js'), 'publish', '--loglevel', 'verbose'], job, directory);
}

const clients = { 'uv 0.13.9': uv, 'npm 12.2.2': npm };

/** What a client showed of a refusal, without what differs from run to run. */
function shown(text) {
  const plain = text.replaceAll(/\x1b\[[0-9;]*m/g, '').replaceAll(tls.url, 'BASE').replaceAll(BASE_URL, 'BASE').replaceAll(new URL(tls.url).host, 'HOST').replaceAll(/[0-9a-f]{40}/g, 'UID');
  const lines = plain.split('\n').map((line) => line.trim()).filter((line) => !line.startsWith('npm verbose stack') && /no identity|put ~|no JWT|malformed|Failed token exchange|need auth This/.test(line));
  return [...new Set(lines)].join(' / ') || 'nothing';
}

function row(what, client, outcome) {
  rows.push(`${what} | ${client} | ${outcome.status === 0 ? 'succeeds' : 'fails'} | ${shown(outcome.text)}`);
}

let tls;
try {
  tls = await secured(work);
  servers.push(tls.server);
  const owner = await owned('trusting', 'walk-trusted');
  const elsewhere = await owned('elsewhere', 'walk-trusted-elsewhere');
  const job = await signer(owner.upstream);
  const unknown = await signer('e30.e30.e30');
  for (const [client, publish] of Object.entries(clients)) {
    const published = await publish(job, owner.organization, '1.0.0');
    check(`${client} publishes with the token of a CI system`, published.status === 0, published.text);
    const further = await publish(job, owner.organization, '1.1.0');
    check(`${client} publishes the next version`, further.status === 0, further.text);
    const refused = await publish(job, elsewhere.organization, '1.2.0');
    check(`${client} publishes nothing in an organization that does not trust the job`, refused.status !== 0, refused.text);
    row('publish where no identity matches', client, refused);
    const unnamed = await publish(job, '', '1.2.0');
    check(`${client} publishes nothing without a group`, unnamed.status !== 0, unnamed.text);
    row('publish without a group', client, unnamed);
    const broken = await publish(unknown, owner.organization, '1.2.0');
    check(`${client} publishes nothing with a broken token`, broken.status !== 0, broken.text);
    row('publish with a broken token', client, broken);
  }
  check('uv asks for the audience of the server', job.audiences.includes(BASE_URL), job.audiences.join(' '));
  check('npm asks for the audience of the host', job.audiences.includes('npm:localhost'), job.audiences.join(' '));

  const written = `${rows.join('\n')}\n`;
  if (UPDATE_GOLDEN) writeFileSync(golden, written);
  check('what each client prints is the golden table', readFileSync(golden, 'utf8') === written, written);
  console.log(`\npackages-trusted: ${checks()} checks passed`);
} finally {
  for (const server of servers) server.close();
  rmSync(work, { recursive: true, force: true });
}
