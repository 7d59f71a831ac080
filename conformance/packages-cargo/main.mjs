// The registry of crates with cargo: publish, resolve, pin, lock, yank, and what cargo shows where something is refused, as a
// golden table.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE                    its binary
//   PROVIDER                   provider.json of the identity provider
//   UPDATE_GOLDEN=1            write the table of what the client prints again
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { call, check, checks, owned, refuseVulnerable } from '../lib.mjs';

const { BASE_URL, BOWLINE, OPERATOR_TOKEN, PROVIDER, UPDATE_GOLDEN } = process.env;
const here = dirname(fileURLToPath(import.meta.url));
const golden = join(here, 'golden.txt');
const host = new URL(BASE_URL).host;
const work = mkdtempSync(join(tmpdir(), 'crates.'));
const DAY = 24 * 3600 * 1000;
/** The public registry, as records and cargo call it. */
const PUBLIC = ['crates', 'io'].join('.');
/** The directory of cargo and rustc: a launcher of toolchains would look for them in the home of the user. */
const tools = join(execFileSync('rustc', ['--print', 'sysroot'], { cwd: work, encoding: 'utf8' }).trim(), 'bin');
const rows = [];
const servers = [];
let directories = 0;

/** Runs a program with nothing of this machine's settings, while this process serves. */
function run(command, args, cwd, env = {}) {
  const clean = { HOME: `${cwd}.home`, PATH: `${tools}:${process.env.PATH}`, COLUMNS: '1000', NO_COLOR: '1', ...env };
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env: clean, cwd, timeout: 180_000 });
    const printed = { stdout: '', stderr: '', text: '' };
    for (const stream of ['stdout', 'stderr']) {
      child[stream].on('data', (part) => {
        printed[stream] += part;
        printed.text += part;
      });
    }
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, ...printed }));
  });
}

/** Runs the command line as the operator. */
function bowline(...args) {
  const file = join(work, 'operator.token');
  writeFileSync(file, OPERATOR_TOKEN, { mode: 0o600 });
  return run(BOWLINE, [...args, '--api', BASE_URL, '--token-file', file], work);
}

const basic = (user, password) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

/** The registry at a group, and the token of a caller. */
const registry = (caller, group = '') => ({ url: `${BASE_URL}/libraries/cargo/${group && `~${group}/`}`, token: basic(caller.identity, caller.upstream) });

/** An identity of an organization with a role, and the token that assumes it. */
async function member(organization, subject, role) {
  const { issuer } = JSON.parse(readFileSync(PROVIDER, 'utf8'));
  const identity = (await call('POST', `/iam/v2/identities/${organization}`, { name: subject, claimMatch: { issuer, subject } })).uid;
  const { roles } = await call('GET', `/iam/v2/roles?name=${role}`);
  await call('POST', `/iam/v2/roleBindings/${organization}`, { identityUid: identity, roleUid: roles[0].uid });
  const upstream = execFileSync('node', [join(here, '../walk/token.mjs'), subject], { encoding: 'utf8' }).trim();
  return { organization, identity, upstream };
}

/** The token for libraries of an identity. */
async function exchanged({ identity, upstream }) {
  const query = new URLSearchParams({ aud: `${BASE_URL}/libraries`, identity });
  const answer = await fetch(`${BASE_URL}/sts/exchange?${query}`, { headers: { authorization: `Bearer ${upstream}` } });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`the exchange responds with ${answer.status}: ${text}`);
  return JSON.parse(text).token;
}

/** A new directory. */
function directory() {
  const path = join(work, `project-${(directories += 1)}`);
  mkdirSync(path, { recursive: true });
  return path;
}

/** A client: its home has the settings of one registry alone, and nothing from before. */
function client(at) {
  const home = directory();
  writeFileSync(join(home, 'config.toml'), `[registries.bowline]\nindex = "sparse+${at.url}"\ncredential-provider = "cargo:token"\n\n[source.crates-io]\nreplace-with = "bowline"\n`);
  return { home, token: at.token };
}

function cargo({ home, token }, args, cwd) {
  return run('cargo', args, cwd, { CARGO_HOME: home, CARGO_NET_RETRY: '0', CARGO_REGISTRIES_BOWLINE_TOKEN: token });
}

/** A new directory with a package of these lines and this source. */
function written(lines, file, source) {
  const cwd = directory();
  mkdirSync(join(cwd, 'src'));
  writeFileSync(join(cwd, 'Cargo.toml'), `[package]\n${lines}\n`);
  writeFileSync(join(cwd, 'src', file), source);
  return cwd;
}

/** Publishes a version whose manifest has more lines. */
function publish(at, name, version, more = '') {
  const lines = `name = "${name}"\nversion = "${version}"\nedition = "2021"\nlicense = "MIT"\ndescription = "A crate."\n${more}`;
  const cwd = written(lines, 'lib.rs', 'pub const VERSION: &str = env!("CARGO_PKG_VERSION");\n');
  return cargo(client(at), ['publish', '--registry', 'bowline', '--no-verify', '--allow-dirty'], cwd);
}

/** A change of a version, by a command of cargo. */
const change = (at, ...args) => cargo(client(at), [...args, '--registry', 'bowline'], directory());

/** A project with dependencies, after commands in its directory; the first one that fails is the last. */
async function project(at, dependencies, commands = ['fetch'], { cwd, by = client(at) } = {}) {
  const where = cwd ?? app(dependencies);
  let outcome = { status: 0, stdout: '', stderr: '', text: '' };
  for (const command of commands) {
    const next = await cargo(by, command.split(' '), where);
    outcome = { status: next.status, stdout: outcome.stdout + next.stdout, stderr: outcome.stderr + next.stderr, text: outcome.text + next.text };
    if (next.status !== 0) break;
  }
  return { ...outcome, cwd: where };
}

/** A program that prints the versions of its dependencies, each named with a requirement or a table of TOML. */
function app(dependencies) {
  const quoted = (requirement) => (requirement.startsWith('{') ? requirement : `"${requirement}"`);
  const lines = Object.entries(dependencies).map(([name, requirement]) => `${name} = ${quoted(requirement)}`).join('\n');
  const prints = Object.keys(dependencies).map((name) => `    println!("${name} {}", ${name.replaceAll('-', '_')}::VERSION);`).join('\n');
  return written(`name = "app"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n${lines}`, 'main.rs', `fn main() {\n${prints}\n}\n`);
}

/** What a locked project needs, fetched by a client that has nothing of it. */
const relocked = (at, { cwd }) => project(at, {}, ['fetch --locked'], { cwd });

/** The version of a crate that a project is locked to. */
function chosen({ cwd }, name) {
  const lock = join(cwd, 'Cargo.lock');
  return existsSync(lock) ? readFileSync(lock, 'utf8').match(new RegExp(`name = "${name}"\nversion = "([^"]+)"`))?.[1] : undefined;
}

/** What cargo showed of an error, or its last line, without what differs from run to run. */
function shown({ status, stderr }) {
  const plain = stderr.replaceAll(PUBLIC, 'PUBLIC').replaceAll(BASE_URL, 'BASE').replaceAll(host, 'HOST').replaceAll(/[0-9a-f]{40}(\/[0-9a-f]{16})*/g, 'UID').replaceAll(work, 'WORK').replaceAll(/project-\d+/g, 'PROJECT').replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME').replaceAll(/\d{4}-\d\d-\d\d/g, 'DAY');
  const lines = (text) => text.trim().split(/\s*\n\s*/);
  return status === 0 ? lines(plain).at(-1) : lines(plain.match(/^error: [^]*/m)?.[0] ?? 'nothing').join(' / ');
}

function row(what, outcome) {
  rows.push(`${what} | ${outcome.status === 0 ? 'succeeds' : 'fails'} | ${shown(outcome)}`);
}

/** A call of cargo that must succeed. */
function ok(what, outcome, holds = () => true) {
  check(what, outcome.status === 0 && holds(outcome), `ended with ${outcome.status}:\n${outcome.text}`);
  return outcome;
}

/** A call of cargo that must fail and show these sentences; what it showed is a row of the table. */
function rejected(what, outcome, ...sentences) {
  const missing = sentences.filter((sentence) => !outcome.stderr.includes(sentence));
  check(`cargo fails to ${what}, and shows why`, outcome.status === 101 && missing.length === 0, `ended with ${outcome.status}, without ${JSON.stringify(missing)}:\n${outcome.text}`);
  row(what, outcome);
}

/** Whether a project is locked to this version of a crate. */
const has = (name, version) => (outcome) => chosen(outcome, name) === version;

/** A registry as an upstream whose versions became public at the times of a table. It notes what it is requested for. */
async function aged(at, times) {
  const seen = [];
  const dated = (line) => {
    const version = JSON.parse(line);
    return `${JSON.stringify({ ...version, pubtime: times[version.vers] })}\n`;
  };
  const server = createServer((incoming, outgoing) => {
    seen.push(incoming.url);
    const respond = async () => {
      const answer = await fetch(at.url + incoming.url.slice(1), { headers: { authorization: incoming.headers.authorization ?? '' } });
      let body = Buffer.from(await answer.arrayBuffer());
      if (incoming.url === '/config.json') body = body.toString().replaceAll(at.url, `${url}/`);
      else if (answer.ok && !incoming.url.endsWith('/download')) body = body.toString().trim().split('\n').map(dated).join('');
      outgoing.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' }).end(body);
    };
    respond().catch(() => outgoing.destroy());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  const url = `http://127.0.0.1:${server.address().port}`;
  return { seen, url };
}

/** A time in whole seconds, as indexes have it. */
const second = (time) => new Date(time).toISOString().replace(/\.\d+Z/, 'Z');
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

try {
  const owner = await owned('rustaceans', 'walk-cargo');
  const publisher = await member(owner.organization, 'walk-cargo-publisher', 'libraries.cargo.push');
  const outside = await owned('outrustaceans', 'walk-cargo-outside');
  const own = registry(publisher);
  const pull = await bowline('auth', 'pull-token', 'create', '--parent', owner.organization, '--repository', 'cargo', '-o', 'json');
  check('a pull token is made', pull.status === 0, pull.text);
  const credential = JSON.parse(pull.stdout);
  const reader = registry({ identity: credential.identity_id, upstream: credential.token });

  // ---- publish, and publish again --------------------------------------------------------------------
  row('publish', ok('cargo publishes bwl-leaf 1.0.0', await publish(own, 'bwl-leaf', '1.0.0')));
  for (const version of ['1.1.0', '1.2.0', '1.3.0-rc.1']) ok(`cargo publishes bwl-leaf ${version}`, await publish(own, 'bwl-leaf', version));
  ok('cargo publishes what requires bwl-leaf', await publish(own, 'bwl-branch', '1.0.0', '[dependencies]\nbwl-leaf = "1.1"\n'));
  rejected('publish a version again', await publish(own, 'bwl-leaf', '1.0.0', 'keywords = ["changed"]\n'), 'bwl-leaf@1.0.0 already exists');
  rejected('publish a name that is too close to another', await publish(own, 'bwl_leaf', '1.0.0'), 'bwl_leaf is too close to bwl-leaf, which exists');
  rejected('publish as a reader', await publish(reader, 'bwl-leaf', '1.4.0'), '403', 'Permission denied: ');
  rejected('publish with a wrong token', await publish({ ...own, token: basic(publisher.identity, 'wrong') }, 'bwl-leaf', '1.4.0'), 'the token is malformed');
  rejected('publish in another organization', await publish(registry(outside, owner.organization), 'bwl-leaf', '1.4.0'), 'Permission denied: ');

  // ---- resolve, pin, lock ----------------------------------------------------------------------------
  const built = await project(reader, { 'bwl-branch': '1', 'bwl-leaf': '1' }, ['fetch', 'run --offline']);
  ok('cargo takes the highest release, and builds what it fetched', built, ({ stdout }) => stdout.includes('bwl-branch 1.0.0') && stdout.includes('bwl-leaf 1.2.0'));
  const pinned = ok('cargo takes the version that is pinned', await project(reader, { 'bwl-leaf': '=1.0.0' }), has('bwl-leaf', '1.0.0'));
  ok('cargo takes a preview that is named', await project(reader, { 'bwl-leaf': '1.3.0-rc.1' }), has('bwl-leaf', '1.3.0-rc.1'));
  ok('a locked project is fetched from nothing', await relocked(reader, built), has('bwl-leaf', '1.2.0'));
  const named = await project(own, { 'bwl-leaf': '{ version = "1", registry = "bowline" }' });
  ok('cargo takes a crate of the registry that a manifest names', named, ({ cwd }) => readFileSync(join(cwd, 'Cargo.lock'), 'utf8').includes(`source = "sparse+${own.url}"`));
  const byToken = { ...registry(publisher, owner.organization), token: `Bearer ${await exchanged(publisher)}` };
  ok('cargo fetches from a group with a token for libraries', await project(byToken, { 'bwl-leaf': '1' }), has('bwl-leaf', '1.2.0'));

  const anonymous = await fetch(`${own.url}config.json`);
  check('the challenge to cargo names where to sign in', anonymous.status === 401 && anonymous.headers.get('www-authenticate') === `Cargo login_url="${BASE_URL}/console"`, `${anonymous.status} ${anonymous.headers.get('www-authenticate')}`);
  rejected('fetch with a wrong token', await project({ ...own, token: basic(publisher.identity, 'wrong') }, { 'bwl-leaf': '1' }), 'CARGO_REGISTRIES_BOWLINE_TOKEN', 'the token is malformed');
  rejected('fetch from another organization', await project(registry(outside, owner.organization), { 'bwl-leaf': '1' }), 'does not exist, or the caller lacks a role such as libraries.cargo.pull there');
  const absent = await project(registry(outside), { 'bwl-none': '1' });
  rejected('fetch a crate that is not there', absent, 'no matching package named `bwl-none` found');
  const foreign = await project(registry(outside), { 'bwl-leaf': '1' });
  rejected('fetch a crate of another organization', foreign, 'no matching package named `bwl-leaf` found');
  check('a crate of another organization is as one that is not there', shown(foreign).replaceAll('bwl-leaf', 'bwl-none') === shown(absent), foreign.text);
  rejected('fetch a version that is not there', await project(own, { 'bwl-leaf': '=1.9.0' }), 'candidate versions found');

  // ---- configured by the command line, with the token in a file ---------------------------------------
  const home = directory();
  const configured = await run(BOWLINE, ['libraries', 'configure', 'cargo', '--api', BASE_URL, '--root', home, '--write'], work);
  check('the file of cargo is written', configured.status === 0 && configured.text.includes('CARGO_REGISTRIES_BOWLINE_TOKEN'), configured.text);
  writeFileSync(join(home, '.cargo/credentials.toml'), `[registries.bowline]\ntoken = "${reader.token}"\n`, { mode: 0o600 });
  ok('cargo fetches by its files', await project(reader, { 'bwl-leaf': '1' }, ['fetch'], { by: { home: join(home, '.cargo') } }), has('bwl-leaf', '1.2.0'));

  // ---- yank and take it back -------------------------------------------------------------------------
  row('yank', ok('cargo yanks a version', await change(own, 'yank', 'bwl-leaf@1.2.0')));
  ok('a new lock file passes over a yanked version', await project(reader, { 'bwl-leaf': '1' }), has('bwl-leaf', '1.1.0'));
  ok('a lock file that has a yanked version is fetched', await relocked(reader, built), has('bwl-leaf', '1.2.0'));
  rejected('pin a yanked version', await project(reader, { 'bwl-leaf': '=1.2.0' }), 'is yanked');
  rejected('publish a yanked version with other bytes', await publish(own, 'bwl-leaf', '1.2.0', 'keywords = ["changed"]\n'), '409', 'bwl-leaf-1.2.0.crate already exists with other bytes, and files do not change: publish another version');
  rejected('yank as a reader', await change(reader, 'yank', 'bwl-leaf@1.1.0'), '403', 'Permission denied: ');
  rejected('yank a version that is not there', await change(own, 'yank', 'bwl-leaf@1.9.0'), '404', '"bwl-leaf@1.9.0" does not exist');
  row('unyank', ok('cargo takes a yank back', await change(own, 'yank', 'bwl-leaf@1.2.0', '--undo')));
  const locked = ok('a new lock file takes the version again', await project(reader, { 'bwl-leaf': '1' }), has('bwl-leaf', '1.2.0'));

  // ---- what other registries have --------------------------------------------------------------------
  rejected('search', await change(own, 'search', 'bwl'), 'crates cannot be searched here');
  rejected('list owners', await change(own, 'owner', '--list', 'bwl-leaf'), 'crates have no owners here');
  rejected('add an owner', await change(own, 'owner', '--add', 'friend', 'bwl-leaf'), 'crates have no owners here');

  // ---- from upstreams: the crates of other organizations ----------------------------------------------
  for (const version of ['1.0.0', '1.1.0']) ok(`another organization publishes bwl-outer ${version}`, await publish(registry(outside), 'bwl-outer', version));
  const elder = await owned('oldrustaceans', 'walk-cargo-aged');
  for (const version of ['1.0.0', '1.1.0']) ok(`a third organization publishes bwl-aged ${version}`, await publish(registry(elder), 'bwl-aged', version));
  // The second version is seven days old soon, and not before it was refused.
  const ripe = Date.now() + 25_000;
  const old = await aged(registry(elder, elder.organization), { '1.0.0': second(Date.now() - 40 * DAY), '1.1.0': second(ripe - 7 * DAY) });
  const account = (caller) => ({ ecosystem: 'CARGO', username: caller.identity, password: caller.upstream });
  const upstreams = [{ name: 'outside', url: registry(outside, outside.organization).url, ...account(outside) }, { name: 'aged', url: old.url, position: 1, ...account(elder) }];
  for (const upstream of upstreams) await call('POST', `/packageupstreams/v1/organizations/${owner.organization}:setUpstream`, { upstream });
  const mixed = await project(reader, { 'bwl-outer': '1', 'bwl-aged': '1', 'bwl-leaf': '1' }, ['fetch', 'run --offline']);
  ok('cargo takes crates of upstreams beside own ones', mixed, ({ stdout }) => ['bwl-outer 1.1.0', 'bwl-aged 1.1.0', 'bwl-leaf 1.2.0'].every((line) => stdout.includes(line)));
  const young = ok('a crate of an upstream is locked', await project(reader, { 'bwl-aged': '=1.1.0' }), has('bwl-aged', '1.1.0'));
  const outer = ok('a crate of another upstream is locked', await project(reader, { 'bwl-outer': '=1.0.0' }), has('bwl-outer', '1.0.0'));
  check('no upstream is requested for own crates', old.seen.length > 0 && old.seen.every((path) => !path.includes('bwl-leaf')), old.seen.join('\n'));

  // ---- what a policy withholds -----------------------------------------------------------------------
  const blockList = [{ purl: 'pkg:cargo/bwl-leaf@1.2.0' }, { purl: 'pkg:cargo/bwl-branch' }];
  const policy = await call('POST', `/libraries/v1/policies/${owner.organization}`, { name: 'no-new', blockList });
  await call('POST', `/cargopolicies/v1/organizations/${owner.organization}:setPolicy`, { mode: 'CARGO_POLICY_MODE_ENFORCED', policy: policy.id });
  const inForce = await bowline('libraries', 'cargo-policies', 'get', owner.organization);
  check('the policy is in force', inForce.status === 0 && inForce.text.includes(policy.id), inForce.text);

  // Crates of upstreams must have been public for seven days, which own ones need not.
  const cooling = client(reader);
  rejected('fetch a locked young version', await project(reader, {}, ['fetch --locked'], { cwd: young.cwd, by: cooling }), 'Blocked by policy no-new: pkg:cargo/bwl-aged@1.1.0 is younger than 7 days; allowed from ');
  ok('a new lock file passes over a young version', await project(reader, { 'bwl-aged': '1' }, ['fetch'], { by: cooling }), has('bwl-aged', '1.0.0'));
  check('the young version was not old enough until now', Date.now() < ripe, 'the time in `ripe` is too short for this machine');
  rejected('fetch a crate of young versions', await project(reader, { 'bwl-outer': '1' }), 'is yanked');

  ok('a new lock file passes over a blocked version', await project(reader, { 'bwl-leaf': '1' }), has('bwl-leaf', '1.1.0'));
  const onList = (purl, entry) => `Blocked by policy no-new: ${purl} is on its block list as ${entry}`;
  rejected('pin a blocked version', await project(reader, { 'bwl-leaf': '=1.2.0' }), 'is yanked');
  rejected('fetch a locked blocked version', await relocked(reader, locked), onList('pkg:cargo/bwl-leaf@1.2.0', 'pkg:cargo/bwl-leaf@1.2.0'));
  rejected('fetch a blocked crate', await project(reader, { 'bwl-branch': '1' }), onList('pkg:cargo/bwl-branch', 'pkg:cargo/bwl-branch'));
  rejected('fetch a locked blocked crate', await relocked(reader, built), onList('pkg:cargo/bwl-branch', 'pkg:cargo/bwl-branch'));
  const checked = await bowline('libraries', 'check', join(mixed.cwd, 'Cargo.lock'), '--organization', owner.organization);
  check('what a policy refuses is found in Cargo.lock', checked.status === 1 && checked.text.split('\n').some((line) => line.includes('pkg:cargo/bwl-outer@1.1.0') && line.includes('COOLDOWN')), checked.text);
  // They are written every two seconds.
  let recorded;
  for (let tries = 0; tries < 50 && !recorded; tries += 1) {
    await sleep(200);
    const { items = [] } = await call('GET', `/cargopolicies/v1/organizations/${owner.organization}/blocked-packages`);
    recorded = items.find(({ purl, reason }) => purl === 'pkg:cargo/bwl-leaf@1.2.0' && reason === 'BLOCK_LIST');
  }
  check('refused downloads are recorded', recorded?.attemptCount >= 1, JSON.stringify(recorded));

  // ---- an exception, and time ------------------------------------------------------------------------
  const exception = await call('POST', `/packageexceptions/v1/organizations/${owner.organization}:createException`, { purl: 'pkg:cargo/bwl-outer@1.0.0', justification: 'mends a fault' });
  ok('an exception lifts the cooldown of one version', await project(reader, { 'bwl-outer': '1' }), has('bwl-outer', '1.0.0'));
  ok('a locked version with an exception is fetched', await relocked(reader, outer), has('bwl-outer', '1.0.0'));
  await call('POST', `/packageexceptions/v1/exceptions/${exception.uid}:end`, {});
  rejected('fetch a locked version whose exception has ended', await relocked(reader, outer), 'Blocked by policy no-new: pkg:cargo/bwl-outer@1.0.0 is younger than 7 days; allowed from ');

  // It ends at the first whole second that is late enough.
  await sleep(Math.max(0, ripe + 2000 - Date.now()));
  ok('a version is fetched by the same client once it is old enough', await project(reader, {}, ['fetch --locked'], { cwd: young.cwd, by: cooling }));
  ok('a new lock file takes the version that is old enough', await project(reader, { 'bwl-aged': '1' }, ['fetch'], { by: cooling }), has('bwl-aged', '1.1.0'));
  await call('PUT', `/libraries/v1/policies/${policy.id}`, { name: 'no-new', cooldownDays: 0 });
  ok('cargo takes new versions once there is no cooldown', await project(reader, { 'bwl-outer': '1' }), has('bwl-outer', '1.1.0'));

  // ---- as of a date, and a freeze --------------------------------------------------------------------
  const then = second(Date.now() - 20 * DAY);
  const dated = registry(publisher, `${owner.organization}@${then.slice(0, 10)}`);
  ok('a dated view has the versions of that time', await project(dated, { 'bwl-aged': '1' }), has('bwl-aged', '1.0.0'));
  rejected('fetch a later version than a date', await project(dated, { 'bwl-aged': '=1.1.0' }), 'candidate versions found');
  rejected('fetch a later crate than a date', await project(dated, { 'bwl-leaf': '1' }), 'no matching package named `bwl-leaf` found');
  rejected('publish at a date', await publish(dated, 'bwl-leaf', '1.4.0'), 'packages are not published at a time');

  await call('POST', `/packagefreezes/v1/organizations/${owner.organization}:freeze`, { ecosystems: ['CARGO'], cutoffTime: then, justification: 'a worm is about' });
  ok('a new lock file passes over a frozen version', await project(reader, { 'bwl-aged': '1' }), has('bwl-aged', '1.0.0'));
  rejected('fetch a locked frozen version', await relocked(reader, young), `Blocked by a freeze at ${then}: pkg:cargo/bwl-aged@1.1.0 was published later, `);
  ok('own crates are not frozen', await project(reader, { 'bwl-leaf': '1' }), has('bwl-leaf', '1.2.0'));
  await call('POST', `/packagefreezes/v1/organizations/${owner.organization}:liftFreeze`, { ecosystems: ['CARGO'] });
  ok('a version is fetched once the freeze is lifted', await relocked(reader, young));

  // ---- known vulnerabilities -------------------------------------------------------------------------
  await refuseVulnerable(policy.id, PUBLIC, 'bwl-outer', '1.1.0');
  ok('cargo takes the fixed version', await project(reader, { 'bwl-outer': '1' }), has('bwl-outer', '1.1.0'));
  rejected('fetch a locked vulnerable version', await relocked(reader, outer), `Blocked by policy no-new: pkg:cargo/bwl-outer@1.0.0 has SUITE-${PUBLIC}-1 (critical), fixed in 1.1.0`);

  // ---- what is deleted -------------------------------------------------------------------------------
  const gone = await fetch(`${own.url}api/v1/crates/bwl-leaf/1.0.0`, { method: 'DELETE', headers: { authorization: own.token } });
  check('a version is deleted', gone.status === 200, await gone.text());
  rejected('fetch a locked deleted version', await relocked(reader, pinned), 'bwl-leaf');
  rejected('publish a deleted version', await publish(own, 'bwl-leaf', '1.0.0'), '409', 'bwl-leaf-1.0.0.crate was deleted, and its name stays used: publish another version');

  rows.sort();
  if (UPDATE_GOLDEN) writeFileSync(golden, `${rows.join('\n')}\n`);
  check('what the client prints is the golden table', readFileSync(golden, 'utf8').trim() === rows.join('\n'), rows.join('\n'));
  console.log(`\npackages-cargo: ${checks()} checks passed`);
} catch (error) {
  console.error(`packages-cargo: FAILED after ${checks()} checks: ${error.stack}`);
  process.exitCode = 1;
} finally {
  for (const server of servers) server.close();
  rmSync(work, { recursive: true, force: true });
}
