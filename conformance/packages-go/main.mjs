// The proxy of Go modules with the go command: publish, get, pin, build from a locked tree, and what it shows where something is
// refused, as a golden table.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE                    its binary
//   PROVIDER                   provider.json of the identity provider
//   UPDATE_GOLDEN=1            write the table of what the client prints again
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { call, check, checks, owned, refuseVulnerable } from '../lib.mjs';
import { secured } from '../tls.mjs';

const { BASE_URL, BOWLINE, OPERATOR_TOKEN, UPDATE_GOLDEN } = process.env;
const here = dirname(fileURLToPath(import.meta.url));
const golden = join(here, 'golden.txt');
const work = mkdtempSync(join(tmpdir(), 'modules.'));
const rows = [];
let directories = 0;

/** Runs a program with nothing of this machine's settings, while this process serves. */
function run(command, args, cwd, env = {}) {
  const clean = { HOME: `${cwd}.home`, PATH: process.env.PATH, COLUMNS: '1000', NO_COLOR: '1', ...env };
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env: clean, cwd, timeout: 180_000 });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (text += part));
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, text }));
  });
}

/** Where modules are, and who asks. */
const proxy = (owner, group = '') => ({ url: `${BASE_URL}/libraries/go${group && `/~${group}`}`, user: owner.identity, password: owner.upstream });

/** A new directory. */
function directory() {
  const path = join(work, `project-${(directories += 1)}`);
  mkdirSync(path, { recursive: true });
  return path;
}

const authorization = (at) => ({ authorization: `Basic ${Buffer.from(`${at.user}:${at.password}`).toString('base64')}` });

const escaped = (module) => module.replaceAll(/[A-Z]/g, (letter) => `!${letter.toLowerCase()}`);

/** Publishes a version with these requirements; the answer. */
async function publish(at, module, version, requirements = []) {
  const file = join(work, 'archive.zip');
  const made = await run('python3', [join(here, 'archive.py'), file, module, version, ...requirements], work);
  if (made.status !== 0) throw new Error(made.text);
  const answer = await fetch(`${at.url}/${escaped(module)}/@v/${version}.zip`, { method: 'PUT', headers: authorization(at), body: readFileSync(file) });
  return { status: answer.status, text: await answer.text() };
}

/** The settings of a project: modules come from one proxy alone, and nothing is known from before. */
function settings(at, cache = directory()) {
  const url = new URL(at.url.replace(BASE_URL, tls.url));
  url.username = encodeURIComponent(at.user).replaceAll('%2F', '_');
  url.password = encodeURIComponent(at.password);
  return { GOPROXY: at.env ? at.env.GOPROXY ?? '' : url.href, GONOSUMDB: '*', GOFLAGS: '-modcacherw -buildvcs=false', GOTOOLCHAIN: 'local', GOMODCACHE: cache, GOCACHE: join(work, 'built'), GOENV: 'off', SSL_CERT_FILE: tls.cert, ...at.env };
}

/** A program that imports modules, after commands in its directory; the last one that failed ends it. */
async function project(at, imports, commands, cwd = directory(), cache = undefined) {
  const env = settings(at, cache);
  if (!existsSync(join(cwd, 'go.mod'))) {
    const name = (module) => module.replace(/\/v\d+$/, '').split('/').at(-1);
    const lines = imports.map((module, at) => `import m${at} "${module}"`).join('\n');
    const prints = imports.map((module, at) => `\tprintln("${name(module)}", m${at}.Version)`).join('\n');
    writeFileSync(join(cwd, 'main.go'), `package main\n\n${lines}\n\nfunc main() {\n${prints}\n}\n`);
    writeFileSync(join(cwd, 'go.mod'), 'module bwl.example/app\n\ngo 1.21\n');
  }
  let outcome = { status: 0, text: '' };
  for (const command of commands) {
    const next = await run('go', command.split(' '), cwd, env);
    outcome = { status: next.status, text: outcome.text + next.text };
    if (next.status !== 0) break;
  }
  return { ...outcome, cwd };
}

/** What the client showed of an answer, without what differs from run to run. */
function shown(text) {
  const plain = text.replaceAll(tls.url.replace('https://', ''), 'HOST').replaceAll(/\/\/[^\s/@]+:[^\s@]+@HOST/g, '//ACCOUNT@HOST').replaceAll(/[0-9a-f]{40}(\/[0-9a-f]{16})*/g, 'UID').replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
  const from = plain.match(/(reading|not found|unrecognized|no matching|4\d\d )[^]*$/)?.[0] ?? plain;
  return from.trim().split(/\s*\n\s*/).slice(0, 3).join(' / ');
}

function row(what, outcome) {
  rows.push(`${what} | ${outcome.status === 0 ? 'succeeds' : 'fails'} | ${shown(outcome.text)}`);
}

/** A server that notes what it is asked, and has nothing but a database of checksums. */
async function recording() {
  const seen = [];
  const server = createServer((incoming, outgoing) => {
    seen.push(incoming.url);
    outgoing.writeHead(incoming.url.endsWith('/supported') ? 200 : 404).end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, seen, url: `http://127.0.0.1:${server.address().port}` };
}

const servers = [];
let tls;
try {
  // The go command sends no account without https.
  tls = await secured(work);
  servers.push(tls.server);
  const owner = await owned('gophers', 'walk-go-modules');
  const outside = await owned('outgophers', 'walk-go-outside');
  const own = proxy(owner);
  const [leaf, branch, later] = ['bwl.example/Team/leaf', 'bwl.example/Team/branch', 'bwl.example/Team/leaf/v2'];

  // ---- publish, and publish again --------------------------------------------------------------------
  for (const version of ['v1.0.0', 'v1.1.0', 'v1.2.0', 'v1.3.0-rc.1']) {
    const published = await publish(own, leaf, version);
    check(`leaf ${version} is published`, published.status === 201, published.text);
  }
  check('the second major version has a path of its own', (await publish(own, later, 'v2.0.0')).status === 201);
  check('what requires leaf is published', (await publish(own, branch, 'v1.0.0', [`${leaf} v1.1.0`])).status === 201);
  check('the same archive is published again', (await publish(own, leaf, 'v1.0.0')).status === 200);

  // ---- get, pin, lock --------------------------------------------------------------------------------
  const got = await project(own, [branch, later], [`get ${branch}`, `get ${later}`, 'run .']);
  check('go get chooses versions, and what they require', got.status === 0 && got.text.includes('branch v1.0.0') && got.text.includes('leaf v2.0.0'), got.text);
  const latest = await project(own, [leaf], [`get ${leaf}@latest`, 'run .']);
  check('go get takes the highest release', latest.status === 0 && latest.text.includes('leaf v1.2.0'), latest.text);
  const pinned = await project(own, [leaf], [`get ${leaf}@v1.0.0`, 'run .']);
  check('go get takes the version that is named', pinned.status === 0 && pinned.text.includes('leaf v1.0.0'), pinned.text);
  const locked = await project(own, [], ['run -mod=readonly .', 'mod verify', 'mod tidy'], pinned.cwd);
  check('a locked project is built from nothing', locked.status === 0 && locked.text.includes('all modules verified'), locked.text);
  const listed = await project(own, [], ['list -m -versions bwl.example/Team/leaf', 'list -m -u all'], pinned.cwd);
  check('go list shows versions and updates', listed.status === 0 && listed.text.includes('v1.0.0 v1.1.0 v1.2.0') && listed.text.includes('[v1.2.0]'), listed.text);

  for (const [what, at, module] of [['with a wrong token', { ...own, password: 'wrong' }, leaf], ['of another organization', proxy(outside, owner.organization), leaf], ['that is not there', own, 'bwl.example/absent'], ['of a version that is not there', own, `${leaf}@v1.9.0`]]) {
    const outcome = await project(at, [], [`get ${module}`]);
    check(`go gets nothing ${what}`, outcome.status !== 0, outcome.text);
    row(`get a module ${what}`, outcome);
  }

  // ---- configured by the command line, with the account in .netrc ----------------------------------------
  const home = directory();
  const written = await run(BOWLINE, ['libraries', 'configure', 'go', '--libraries-url', `${tls.url}/libraries`, '--root', home, '--write'], work);
  check('the file of the go command is written', written.status === 0 && written.text.includes(`machine ${new URL(tls.url).host} `), written.text);
  writeFileSync(join(home, '.netrc'), `machine ${new URL(tls.url).host} login ${own.user} password ${own.password}\n`, { mode: 0o600 });
  const { GOPROXY: _, GOENV: __, ...rest } = settings(own);
  const configured = await run('go', ['mod', 'download', '-json', `${leaf}@v1.1.0`], directory(), { ...rest, HOME: home, GOENV: join(home, '.config/go/env') });
  check('go downloads by its file', configured.status === 0 && configured.text.includes('"Version": "v1.1.0"'), configured.text);

  // ---- from an upstream: the modules of another organization ------------------------------------------------
  const outer = 'out.example/outer';
  for (const version of ['v1.0.0', 'v1.1.0']) check(`another organization publishes outer ${version}`, (await publish(proxy(outside), outer, version)).status === 201);
  const other = await recording();
  servers.push(other.server);
  const upstreams = [{ name: 'outside', ecosystem: 'GO', url: proxy(outside, outside.organization).url, username: outside.identity, password: outside.upstream }, { name: 'recording', ecosystem: 'GO', url: other.url, position: 1 }];
  for (const upstream of upstreams) await call('POST', `/packageupstreams/v1/organizations/${owner.organization}:setUpstream`, { upstream });
  const mixed = await project(own, [outer, leaf], [`get ${outer}@v1.1.0`, `get ${leaf}@v1.0.0`, 'run .']);
  check('go gets modules of an upstream beside own ones', mixed.status === 0 && mixed.text.includes('outer v1.1.0') && mixed.text.includes('leaf v1.0.0'), mixed.text);
  await project(own, [], [`get ${leaf}/secret`, `get ${leaf}@v1.9.0`]);
  check('no other proxy is asked for own modules', other.seen.every((path) => !path.includes('leaf')), other.seen.join('\n'));
  const checked = await project({ ...own, env: { GONOSUMDB: '', GOSUMDB: 'sum.golang.org', GOPROXY: settings(own).GOPROXY } }, [], [`get ${leaf}@v1.0.0`]);
  check('no database of checksums is asked for an own module', checked.text.includes('set GONOSUMDB=') && checked.status !== 0 && !other.seen.some((path) => path.includes('leaf')), checked.text);
  row('get an own module without GONOSUMDB', checked);

  // ---- what a policy withholds -------------------------------------------------------------------------
  const policy = await call('POST', `/libraries/v1/policies/${owner.organization}`, { name: 'no-new', blockList: [{ purl: 'pkg:golang/bwl.example/Team/leaf@v1.2.0' }, { purl: 'pkg:golang/bwl.example/Team/branch' }] });
  await call('POST', `/libraries/v1/policy-bindings/${owner.organization}`, { policy: policy.id, ecosystem: 'GO', mode: 'LIBRARY_POLICY_BINDING_MODE_ENFORCED' });
  const passed = await project(own, [leaf], [`get ${leaf}@latest`, 'run .']);
  check('go passes over a blocked version', passed.status === 0 && passed.text.includes('leaf v1.1.0'), passed.text);
  for (const [what, module] of [['blocked version', `${leaf}@v1.2.0`], ['blocked module', branch], ['young version', `${outer}@v1.1.0`]]) {
    const outcome = await project(own, [], [`get ${module}`]);
    check(`go gets no ${what}`, outcome.status !== 0, outcome.text);
    row(`get a ${what}`, outcome);
  }
  const tree = await project(own, [], ['build .'], latest.cwd);
  check('a locked project is not built with a blocked version', tree.status !== 0, tree.text);
  row('build with a locked blocked version', tree);
  const direct = await project({ ...own, env: { GOPROXY: `${settings(own).GOPROXY},http://127.0.0.1:9` } }, [], [`get ${leaf}@v1.2.0`]);
  check('a refusal does not lead to the next proxy', direct.status !== 0 && direct.text.includes('Blocked by policy'), direct.text);
  const kept = directory();
  check('go gets no young version', (await project(own, [], [`get ${outer}@v1.0.0`], directory(), kept)).status !== 0);
  await call('PUT', `/libraries/v1/policies/${policy.id}`, { name: 'no-new', cooldownDays: 0 });
  const old = await project(own, [outer], [`get ${outer}@v1.0.0`, 'run .'], directory(), kept);
  check('go asks again once there is no cooldown', old.status === 0 && old.text.includes('outer v1.0.0'), old.text);
  await call('POST', `/packagefreezes/v1/organizations/${owner.organization}:freeze`, { cutoffTime: '2020-01-01T00:00:00Z', justification: 'a worm is about' });
  const frozen = await project(own, [], [`get ${outer}@v1.1.0`]);
  check('go gets no frozen version', frozen.status !== 0, frozen.text);
  row('get a frozen version', frozen);
  await call('POST', `/packagefreezes/v1/organizations/${owner.organization}:liftFreeze`, {});
  await refuseVulnerable(policy.id, 'Go', outer, '1.1.0');
  const fixed = await project(own, [outer], [`get ${outer}`, 'run .']);
  check('go gets the fixed version', fixed.status === 0 && fixed.text.includes('outer v1.1.0'), fixed.text);
  const vulnerable = await project(own, [], [`get ${outer}@v1.0.0`]);
  check('go gets no vulnerable version', vulnerable.status !== 0, vulnerable.text);
  row('get a vulnerable version', vulnerable);

  // ---- a lock file, and what is deleted ------------------------------------------------------------------
  await call('PUT', `/libraries/v1/policies/${policy.id}`, { name: 'no-new', cooldownDays: 7 });
  const token = join(work, 'operator.token');
  writeFileSync(token, OPERATOR_TOKEN, { mode: 0o600 });
  const found = await run(BOWLINE, ['libraries', 'check', join(mixed.cwd, 'go.sum'), '--organization', owner.organization, '--api', BASE_URL, '--token-file', token], work);
  check('what a policy refuses is found in go.sum', found.status === 1 && found.text.includes('pkg:golang/out.example/outer@v1.1.0') && found.text.includes('COOLDOWN'), found.text);
  const gone = await fetch(`${own.url}/${escaped(leaf)}/@v/v1.0.0.zip`, { method: 'DELETE', headers: authorization(own) });
  check('a version is deleted', gone.status === 204);
  const deleted = await project(own, [], [`get ${leaf}@v1.0.0`]);
  check('go gets no deleted version', deleted.status !== 0, deleted.text);
  row('get a deleted version', deleted);
  check('the go command shows why', rows.filter((one) => /blocked|young/.test(one)).every((one) => one.includes('Blocked by policy no-new')), rows.join('\n'));

  rows.sort();
  if (UPDATE_GOLDEN) writeFileSync(golden, `${rows.join('\n')}\n`);
  check('what the client prints is the golden table', readFileSync(golden, 'utf8').trim() === rows.join('\n'), rows.join('\n'));
  console.log(`\npackages-go: ${checks()} checks passed`);
} catch (error) {
  console.error(`packages-go: FAILED after ${checks()} checks: ${error.stack}`);
  process.exitCode = 1;
} finally {
  for (const server of servers) server.close();
  rmSync(work, { recursive: true, force: true });
}
