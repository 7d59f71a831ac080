// The registry of npm with the clients that people have: publish, install, pin and lock, change and take back, and what each
// of them shows where something is refused, as a golden table.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE                    its binary
//   PROVIDER                   provider.json of the identity provider
//   JAVASCRIPT                 directory whose node_modules has the clients
//   JAVASCRIPT_WHOLE=1         all versions of the clients instead of the newest ones
//   UPDATE_GOLDEN=1            write the table of what each client prints again; it is that of JAVASCRIPT_WHOLE
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { call, check, checks, owned, refuseVulnerable } from '../lib.mjs';

const { BASE_URL, BOWLINE, JAVASCRIPT, JAVASCRIPT_WHOLE, OPERATOR_TOKEN, UPDATE_GOLDEN } = process.env;
const here = dirname(fileURLToPath(import.meta.url));
const golden = join(here, 'golden.txt');
const host = new URL(BASE_URL).host;
const work = mkdtempSync(join(tmpdir(), 'javascript.'));
const rows = [];
let directories = 0;

/** Runs a program with nothing of this machine's settings; what it keeps is kept for one directory. */
function run(command, args, cwd, home = `${cwd}.home`) {
  // The old yarn takes another directory than its home where it runs as root.
  const clean = { HOME: home, YARN_CACHE_FOLDER: join(home, 'yarn'), PATH: process.env.PATH, COLUMNS: '1000', NO_COLOR: '1', CI: '1', BOWLINE_NPM_AUTH: process.env.BOWLINE_NPM_AUTH, BOWLINE_NPM_ACCOUNT: process.env.BOWLINE_NPM_ACCOUNT };
  const { status, stdout, stderr, error } = spawnSync(command, args, { env: clean, cwd, encoding: 'utf8', timeout: 120_000 });
  if (error) throw error;
  return { status, text: stdout + stderr };
}

const script = (path) => (args, cwd, home) => run('node', [join(JAVASCRIPT, 'node_modules', path), ...args], cwd, home);
const binary = (path) => (args, cwd, home) => run(join(JAVASCRIPT, 'node_modules', path), args, cwd, home);

/** Where packages are, and who asks. */
function registry(owner, group = '') {
  return { url: `${BASE_URL}/libraries/javascript/${group && `~${group}/`}`, user: owner.identity, password: owner.upstream };
}

/** A directory with a project, which uses one registry alone. */
function project(at, manifest) {
  const directory = join(work, `project-${(directories += 1)}`);
  mkdirSync(directory, { recursive: true });
  const secret = Buffer.from(`${at.user}:${at.password}`).toString('base64');
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ name: 'app', version: '1.0.0', ...manifest }));
  writeFileSync(join(directory, '.npmrc'), `registry=${at.url}\n//${at.url.split('//')[1]}:_auth=${secret}\nalways-auth=true\nfetch-retries=0\naudit=false\nfund=false\nupdate-notifier=false\nignore-scripts=true\n`);
  writeFileSync(join(directory, '.yarnrc.yml'), `npmRegistryServer: ${JSON.stringify(at.url)}\nnpmAuthIdent: ${JSON.stringify(`${at.user}:${at.password}`)}\nnpmAlwaysAuth: true\nunsafeHttpWhitelist: ["127.0.0.1", "localhost"]\nenableGlobalCache: false\nenableTelemetry: false\nenableImmutableInstalls: false\nnodeLinker: node-modules\nhttpRetry: 0\nnpmMinimalAgeGate: 0\n`);
  return directory;
}

const npm10 = script('npm10/bin/npm-cli.js');
const npm12 = script('npm12/bin/npm-cli.js');
const pnpm10 = script('pnpm10/bin/pnpm.cjs');
const pnpm12 = binary('pnpm12/pnpm');
const yarn1 = script('yarn1/bin/yarn.js');
const yarn4 = script('yarn4/bin/yarn.js');
const bun = binary('bun/bin/bun');

/** This yarn packs projects alone that it has installed. */
const yarnPublish = (args, cwd) => (yarn4(['install'], cwd), yarn4(['npm', ...args], cwd));

/** The clients, each with its program, how it installs, and how it installs what is locked and nothing else. */
const clients = {
  'npm 10.9.9': { program: npm10, install: ['install'], frozen: ['ci'] },
  'npm 12.2.2': { program: npm12, install: ['install'], frozen: ['ci'] },
  'pnpm 10.34.9': { program: pnpm10, install: ['install', '--no-frozen-lockfile'], frozen: ['install', '--frozen-lockfile'] },
  'pnpm 12.21.0': { program: pnpm12, install: ['install', '--no-frozen-lockfile', '--config.minimum-release-age=0'], frozen: ['install', '--frozen-lockfile', '--config.minimum-release-age=0'] },
  'yarn 1.22.22': { program: yarn1, install: ['install', '--non-interactive'], frozen: ['install', '--non-interactive', '--frozen-lockfile'] },
  'yarn 4.18.1': { program: yarn4, install: ['install'], frozen: ['install', '--immutable'] },
  'bun 1.4.5': { program: bun, install: ['install', '--no-cache'], frozen: ['install', '--no-cache', '--frozen-lockfile'] },
};

const newest = ['npm 12.2.2', 'pnpm 12.21.0', 'yarn 4.18.1', 'bun 1.4.5'];
const isTried = (client) => JAVASCRIPT_WHOLE || newest.includes(client);
for (const client of Object.keys(clients)) if (!isTried(client)) delete clients[client];

/** Installs dependencies into a new project. */
function install({ program, install: args }, at, dependencies) {
  const directory = project(at, { dependencies });
  return { directory, ...program(args, directory) };
}

/** The version of a package that a project has. */
function installed(directory, name) {
  const file = join(directory, 'node_modules', name, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : 'nothing';
}

/** Publishes a package by a program of npm's commands. */
function publish(program, at, manifest, ...more) {
  const directory = project(at, { license: 'MIT', main: 'index.js', ...manifest });
  writeFileSync(join(directory, 'index.js'), `module.exports = ${JSON.stringify(manifest.version)};\n`);
  return program(['publish', ...more], directory);
}

/** The response to a request of an owner for a path of the registry, or for an address. */
function request(at, path, method = 'GET', body = undefined) {
  const authorization = `Basic ${Buffer.from(`${at.user}:${at.password}`).toString('base64')}`;
  return fetch(new URL(path, at.url), { method, headers: { authorization, 'content-type': 'application/json' }, body: body && JSON.stringify(body) });
}

const PROVENANCE = 'https://slsa.dev/provenance/v1';
const hash = (algorithm, bytes, form) => createHash(algorithm).update(bytes).digest(form);

/** A bundle of Sigstore about the file of a version. Certificate and signature are only base64. */
function bundle(name, version, bytes) {
  const base64 = (text) => Buffer.from(text).toString('base64');
  const subject = [{ name: `pkg:npm/${name.replace('@', '%40')}@${version}`, digest: { sha512: hash('sha512', bytes, 'hex') } }];
  const payload = base64(JSON.stringify({ _type: 'https://in-toto.io/Statement/v1', subject, predicateType: PROVENANCE, predicate: {} }));
  return {
    mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
    verificationMaterial: { certificate: { rawBytes: base64('certificate') }, tlogEntries: [{ logIndex: '1' }] },
    dsseEnvelope: { payload, payloadType: 'application/vnd.in-toto+json', signatures: [{ sig: base64('signature'), keyid: '' }] },
  };
}

/** Publishes a file with a statement by the document that `npm publish --provenance-file` sends. */
function publishWithStatement(at, manifest, bytes, statement) {
  const { name, version } = manifest;
  const dist = { integrity: `sha512-${hash('sha512', bytes, 'base64')}`, shasum: hash('sha1', bytes, 'hex') };
  const data = JSON.stringify(statement);
  const attachments = {
    [`${name}-${version}.tgz`]: { content_type: 'application/octet-stream', data: bytes.toString('base64'), length: bytes.length },
    [`${name}-${version}.sigstore`]: { content_type: statement.mediaType, data, length: data.length },
  };
  return request(at, name.replace('/', '%2f'), 'PUT', { _id: name, name, 'dist-tags': { latest: version }, versions: { [version]: { ...manifest, dist } }, access: null, _attachments: attachments });
}

/** What a client showed of a sentence: the lines that have a part of it, without what differs from run to run. */
function shown(text, ...marks) {
  const plain = text.replaceAll(/\x1b\[[0-9;]*m/g, '').replaceAll(BASE_URL, 'BASE').replaceAll(host, 'HOST').replaceAll(/[0-9a-f]{40}(\/[0-9a-f]{16})*/g, 'UID').replaceAll(work, 'WORK').replaceAll(/project-\d+/g, 'PROJECT').replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME').replaceAll(/\d+ms|\d+\.\d+s/g, 'DURATION');
  // The name of a log has a time, in which any number may be.
  const printed = plain.split('\n').map((line) => line.trim()).filter((line) => !line.includes('A complete log of this run'));
  const lines = printed.filter((line) => marks.some((mark) => line.includes(mark)));
  return [...new Set(lines)].join(' / ') || 'nothing';
}

function row(what, client, outcome, ...marks) {
  rows.push(`${what} | ${client} | ${outcome.status === 0 ? 'succeeds' : 'fails'} | ${shown(outcome.text, ...marks)}`);
}

try {
  const owner = await owned('scripters', 'walk-javascript');
  const stranger = await owned('otherscripters', 'walk-javascript-stranger');
  const own = registry(owner);

  // ---- publish ---------------------------------------------------------------------------------------
  const publishers = { 'npm 10.9.9': npm10, 'npm 12.2.2': npm12, 'pnpm 10.34.9': (args, cwd) => pnpm10([...args, '--no-git-checks'], cwd), 'yarn 1.22.22': (args, cwd) => yarn1([...args, '--non-interactive'], cwd), 'yarn 4.18.1': yarnPublish, 'bun 1.4.5': bun };
  for (const [number, [client, program]] of Object.entries(publishers).entries()) {
    // Others install what the first one publishes.
    if (number > 0 && !isTried(client)) continue;
    const manifest = { name: `bwl-by-${client.split(' ')[0]}${number}`, version: '1.0.0' };
    const published = publish(program, own, manifest);
    check(`${client} publishes`, published.status === 0, published.text);
    const again = publish(program, own, { ...manifest, description: 'changed' });
    check(`${client} does not publish a version again`, again.status !== 0, again.text);
    row('publish again', client, again, 'publish', '409', 'onflict');
    const wrong = publish(program, { ...own, password: 'wrong' }, { ...manifest, version: '1.0.1' });
    check(`${client} publishes nothing with a wrong token`, wrong.status !== 0, wrong.text);
    row('publish with a wrong token', client, wrong, '401', 'token', 'E401', 'nauth');
  }
  for (const version of ['1.0.0', '1.1.0', '2.0.0-rc.1']) {
    const tag = version.includes('-') ? ['--tag', 'next'] : [];
    const published = publish(npm12, own, { name: '@bwl/example', version, bin: 'index.js', dependencies: { 'bwl-leaf': '^1.0.0' } }, ...tag);
    check(`npm publishes @bwl/example@${version}`, published.status === 0, published.text);
  }
  for (const version of ['1.0.0', '1.2.0']) {
    check(`npm publishes bwl-leaf@${version}`, publish(npm10, own, { name: 'bwl-leaf', version }).status === 0);
  }

  // ---- install, pin, lock ----------------------------------------------------------------------------
  for (const [client, how] of Object.entries(clients)) {
    const newest = install(how, own, { '@bwl/example': '^1.0.0' });
    check(`${client} installs the highest version and what it depends on`, newest.status === 0 && installed(newest.directory, '@bwl/example') === '1.1.0', newest.text);
    const frozen = (rmSync(join(newest.directory, 'node_modules'), { recursive: true, force: true }), how.program(how.frozen, newest.directory));
    check(`${client} installs what is locked`, frozen.status === 0 && installed(newest.directory, '@bwl/example') === '1.1.0', frozen.text);
    const tagged = install(how, own, { '@bwl/example': 'next', 'bwl-leaf': '1.0.0' });
    check(`${client} installs a tag and a pinned version`, tagged.status === 0 && installed(tagged.directory, '@bwl/example') === '2.0.0-rc.1' && installed(tagged.directory, 'bwl-leaf') === '1.0.0', tagged.text);
    for (const [what, at, name] of [['with a wrong token', { ...own, password: 'wrong' }, 'bwl-leaf'], ['of another organization', registry(stranger, owner.organization), 'bwl-leaf'], ['that is not there', own, 'bwl-absent']]) {
      const outcome = install(how, at, { [name]: '1.0.0' });
      check(`${client} installs nothing ${what}`, outcome.status !== 0, outcome.text);
      row(`install ${what}`, client, outcome, '401', '403', '404', 'ermission', 'not found', 'does not exist');
    }
  }
  const grouped = registry(owner, owner.organization);
  const byGroup = install(clients['npm 12.2.2'], grouped, { '@bwl/example': '1.0.0' });
  const lock = readFileSync(join(byGroup.directory, 'package-lock.json'), 'utf8');
  check('npm locks the address of the group', byGroup.status === 0 && lock.includes(`javascript/~${owner.organization}/@bwl/example/-/example-1.0.0.tgz`), byGroup.text);

  // ---- configured by the command line, with the account in the environment ------------------------------
  const home = join(work, 'configured');
  for (const client of ['npm', 'yarn']) {
    const written = run(BOWLINE, ['libraries', 'configure', client, '--api', BASE_URL, '--root', home, '--write'], work);
    check(`the file of ${client} is written`, written.status === 0, written.text);
  }
  const account = `${owner.identity}:${owner.upstream}`;
  process.env.BOWLINE_NPM_AUTH = Buffer.from(account).toString('base64');
  process.env.BOWLINE_NPM_ACCOUNT = account;
  for (const [client, how] of Object.entries(clients)) {
    const directory = project(own, { dependencies: { 'bwl-leaf': '1.0.0' } });
    rmSync(join(directory, '.npmrc'));
    // As the comment in the file says.
    if (client.startsWith('yarn 1')) writeFileSync(join(directory, '.npmrc'), 'always-auth=true\n');
    writeFileSync(join(directory, '.yarnrc.yml'), 'unsafeHttpWhitelist: ["127.0.0.1", "localhost"]\nenableGlobalCache: false\nenableImmutableInstalls: false\nnodeLinker: node-modules\nnpmMinimalAgeGate: 0\n');
    const outcome = how.program(how.install, directory, home);
    check(`${client} installs by its file`, outcome.status === 0 && installed(directory, 'bwl-leaf') === '1.0.0', outcome.text);
  }

  // ---- look, change and take back ----------------------------------------------------------------------
  for (const [client, npm] of [['npm 10.9.9', npm10], ['npm 12.2.2', npm12]]) {
    const directory = project(own, {});
    const ask = (...args) => npm(args, directory);
    check(`${client} pings`, ask('ping').status === 0);
    const whoami = ask('whoami');
    check(`${client} says who someone is`, whoami.status === 0 && whoami.text.includes(owner.identity), whoami.text);
    const view = ask('view', '@bwl/example', 'version');
    check(`${client} shows the latest version`, view.status === 0 && view.text.includes('1.1.0'), view.text);
    for (const args of [['dist-tag', 'add', '@bwl/example@1.0.0', 'old'], ['dist-tag', 'ls', '@bwl/example'], ['dist-tag', 'rm', '@bwl/example', 'old']]) {
      const outcome = ask(...args);
      check(`${client} ${args.slice(0, 2).join(' ')}`, outcome.status === 0 && (args[1] !== 'ls' || outcome.text.includes('old: 1.0.0')), outcome.text);
    }
    const name = `bwl-short-${client.split(' ')[1].split('.')[0]}`;
    for (const version of ['1.0.0', '1.1.0', '2.0.0']) publish(npm, own, { name, version });
    const deprecated = ask('deprecate', `${name}@1.0.0`, 'It lost data: use 2.0.0.');
    check(`${client} deprecates`, deprecated.status === 0, deprecated.text);
    const taken = ask('unpublish', `${name}@2.0.0`, '--force');
    check(`${client} takes a version back`, taken.status === 0, taken.text);
    const left = ask('view', name, 'versions', 'dist-tags', '--json', '--prefer-online');
    check(`${client} sees what is left`, left.status === 0 && !left.text.includes('2.0.0"') && /"latest": "1\.1\.0"/.test(left.text), left.text);
  }
  for (const [client, how] of Object.entries(clients)) {
    const outcome = install(how, own, { 'bwl-short-12': '1.0.0' });
    check(`${client} installs a deprecated version`, outcome.status === 0, outcome.text);
    row('install a deprecated version', client, outcome, 'It lost data', 'deprecated');
  }
  const whole = npm12(['unpublish', 'bwl-short-10', '--force'], project(own, {}));
  check('npm takes a package back', whole.status === 0, whole.text);
  const again = publish(npm12, own, { name: 'bwl-short-10', version: '1.0.0' });
  check('a version that was taken back is not published again', again.status !== 0, again.text);
  row('publish what was taken back', 'npm 12.2.2', again, 'deleted', 'stays used');

  // ---- with signed statements --------------------------------------------------------------------------
  // npm verifies a bundle by the roots of Sigstore's public repository before it sends it, and has no option for other
  // roots: the document is sent by hand. The server has no trusted root, and stores it without verifying its signature.
  const attested = { name: '@bwl/attested', version: '1.0.0', license: 'MIT' };
  const source = project(own, attested);
  const packed = npm12(['pack'], source);
  check('npm packs a package', packed.status === 0, packed.text);
  const bytes = readFileSync(join(source, readdirSync(source).find((file) => file.endsWith('.tgz'))));
  const statement = bundle(attested.name, attested.version, bytes);
  const refused = await publishWithStatement(own, attested, bytes, bundle(attested.name, '1.0.1', bytes));
  const sentence = await refused.text();
  check('a version is not published with a statement about another one', refused.status === 400 && sentence.includes('is not about pkg:npm/@bwl/attested@1.0.0'), sentence);
  check('nothing of it is there', (await request(own, '@bwl%2fattested')).status === 404);
  const accepted = await publishWithStatement(own, attested, bytes, statement);
  check('a version is published with its provenance, which is not verified', accepted.status === 201 && /not verified/.test(accepted.headers.get('npm-notice')), await accepted.text());
  const address = `${own.url}-/npm/v1/attestations/@bwl/attested@1.0.0`;
  // Clients take provenance in a document for trust, and pnpm verifies none: what the server did not verify is not in it.
  const { dist } = (await (await request(own, '@bwl%2fattested')).json()).versions['1.0.0'];
  check('a document does not name what was not verified', !('attestations' in dist), JSON.stringify(dist));
  // `npm audit signatures` begins with Sigstore's public repository, too. These are the parts that it verifies.
  const listed = await request(own, address);
  const { attestations } = await listed.json();
  check('the provenance is served as it was sent', listed.headers.get('x-bowline-attestations') === 'unverified' && isDeepStrictEqual(attestations, [{ predicateType: PROVENANCE, bundle: statement, signer: null }]), JSON.stringify(attestations));
  check('the provenance is about the file of the document', dist.integrity === `sha512-${hash('sha512', bytes, 'base64')}`, JSON.stringify(dist));
  check('the provenance needs credentials', (await fetch(address)).status === 401);
  check('npm publishes the next version without provenance', publish(npm12, own, { ...attested, version: '1.1.0' }).status === 0);
  for (const [client, how] of Object.entries(clients)) {
    const outcome = install(how, own, { '@bwl/attested': '1.0.0' });
    check(`${client} installs a version with provenance`, outcome.status === 0 && installed(outcome.directory, '@bwl/attested') === '1.0.0', outcome.text);
    if (!client.startsWith('pnpm')) continue;
    const strict = { ...how, install: [...how.install, '--config.trust-policy=no-downgrade'] };
    const next = install(strict, own, { '@bwl/attested': '1.1.0' });
    check(`${client} loses no trust that was not verified`, next.status === 0 && installed(next.directory, '@bwl/attested') === '1.1.0', next.text);
  }

  // ---- from an upstream: the registry of another organization ------------------------------------------
  const outside = await owned('outscripters', 'walk-javascript-outside');
  for (const version of ['1.0.0', '1.1.0']) {
    check(`another organization publishes bwl-outer@${version}`, publish(npm12, registry(outside), { name: 'bwl-outer', version }).status === 0);
  }
  const upstream = { name: 'outside', ecosystem: 'JAVASCRIPT', url: registry(outside, outside.organization).url, username: outside.identity, password: outside.upstream };
  await call('POST', `/packageupstreams/v1/organizations/${owner.organization}:setUpstream`, { upstream });
  const ofUpstream = {};
  for (const [client, how] of Object.entries(clients)) {
    const outcome = install(how, own, { 'bwl-outer': '^1.0.0', 'bwl-by-npm0': '1.0.0' });
    check(`${client} installs from an upstream beside own packages`, outcome.status === 0 && installed(outcome.directory, 'bwl-outer') === '1.1.0', outcome.text);
    ofUpstream[client] = outcome.directory;
  }

  // ---- signatures ------------------------------------------------------------------------------------------
  const keys = await request(own, `${own.url}-/npm/v1/keys`);
  check('the registry lists its keys', keys.status === 200 && (await keys.json()).keys.length > 0);
  const forger = spawn('node', [join(here, 'forger.mjs')], { env: { PATH: process.env.PATH, UPSTREAM: BASE_URL, FORGED: 'bwl-leaf' }, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [port] = await once(forger.stdout, 'data');
    const front = `127.0.0.1:${String(port).trim()}`;
    // npm as it is, apart from its client of Sigstore's public repository.
    const npmAudit = (path) => (cwd) => run('node', ['--require', join(here, 'without-tuf.cjs'), join(JAVASCRIPT, 'node_modules', path), 'audit', 'signatures'], cwd);
    const verifiers = {
      'npm 10.9.9': { program: npm10, install: ['install'], audit: npmAudit('npm10/bin/npm-cli.js') },
      'npm 12.2.2': { program: npm12, install: ['install'], audit: npmAudit('npm12/bin/npm-cli.js') },
      'pnpm 12.21.0': { ...clients['pnpm 12.21.0'], audit: (cwd) => pnpm12(['audit', 'signatures'], cwd) },
    };
    for (const [client, how] of Object.entries(verifiers)) {
      const { directory, ...outcome } = install(how, own, { '@bwl/example': '1.0.0', 'bwl-leaf': '1.0.0', 'bwl-outer': '1.0.0' });
      check(`${client} installs what it verifies`, outcome.status === 0, outcome.text);
      const verified = how.audit(directory);
      check(`${client} verifies the signatures of own packages and of those of an upstream`, verified.status === 0 && /audited 3 packages/.test(verified.text) && /3 packages have verified registry signatures/.test(verified.text), verified.text);
      const settings = join(directory, '.npmrc');
      writeFileSync(settings, readFileSync(settings, 'utf8').replaceAll(BASE_URL, `http://${front}`).replaceAll(`//${host}/`, `//${front}/`));
      const wrong = how.audit(directory);
      check(`${client} reports a signature that was changed`, wrong.status === 1 && /1 package has an invalid registry signature/.test(wrong.text) && wrong.text.includes('bwl-leaf@1.0.0') && !wrong.text.includes('bwl-outer@'), wrong.text);
    }
  } finally {
    forger.kill();
  }

  // ---- audit: a record of a vulnerability of what the upstream has ----------------------------------------
  const operator = join(work, 'feeds.token');
  writeFileSync(operator, OPERATOR_TOKEN, { mode: 0o600 });
  const record = { id: 'GHSA-bwla-bwlb-bwlc', modified: '2026-01-01T00:00:00Z', summary: 'bwl-outer runs what it reads', database_specific: { severity: 'HIGH' }, affected: ['bwl-outer', 'bwl-leaf'].map((name) => ({ package: { ecosystem: 'npm', name }, ranges: [{ type: 'SEMVER', events: [{ introduced: '0' }, { fixed: '9.0.0' }] }] })), references: [{ type: 'ADVISORY', url: 'https://advisories.example/GHSA-bwla-bwlb-bwlc' }] };
  writeFileSync(join(work, 'record.json'), JSON.stringify(record));
  const imported = run(BOWLINE, ['feeds', 'import', 'osv', join(work, 'record.json'), '--source', 'walk-npm', '--licence', 'CC0-1.0', '--api', BASE_URL, '--token-file', operator], work);
  check('a record is imported', imported.status === 0, imported.text);
  const audits = { npm: ['audit'], pnpm: ['audit'], yarn: ['npm', 'audit', '--recursive'], bun: ['audit'] };
  for (const [client, how] of Object.entries(clients)) {
    // The old yarn asks one public registry alone, whatever it installs from.
    if (client.startsWith('yarn 1')) continue;
    const args = audits[client.split(' ')[0]];
    const outcome = how.program(args, ofUpstream[client]);
    check(`${client} finds what a record affects`, outcome.status !== 0 && outcome.text.includes('bwl-outer runs what it reads') && !outcome.text.includes('bwl-by-npm0'), outcome.text);
    const own = install(how, registry(outside), { 'bwl-outer': '1.0.0' });
    const clean = how.program(args, own.directory);
    check(`${client} finds nothing about own packages`, clean.status === 0, clean.text);
  }

  // ---- what a policy withholds -------------------------------------------------------------------------
  const locked = {};
  for (const [client, how] of Object.entries(clients)) locked[client] = install(how, own, { 'bwl-leaf': '1.2.0' }).directory;
  const policy = await call('POST', `/libraries/v1/policies/${owner.organization}`, { name: 'no-new', blockList: [{ purl: 'pkg:npm/bwl-leaf@1.2.0' }, { purl: 'pkg:npm/bwl-by-bun5' }] });
  await call('POST', `/libraries/v1/policy-bindings/${owner.organization}`, { policy: policy.id, ecosystem: 'JAVASCRIPT', mode: 'LIBRARY_POLICY_BINDING_MODE_ENFORCED' });
  const marks = ['Blocked by policy', '403', '409', 'No matching', 'no versions', 'No candidates', 'ot found', 'No version'];
  for (const [client, how] of Object.entries(clients)) {
    const range = install(how, own, { 'bwl-leaf': '^1.0.0' });
    check(`${client} passes over a blocked version`, range.status === 0 && installed(range.directory, 'bwl-leaf') === '1.0.0', range.text);
    for (const [what, dependencies] of [['blocked version', { 'bwl-leaf': '1.2.0' }], ['blocked package', { 'bwl-by-bun5': '1.0.0' }]]) {
      const outcome = install(how, own, dependencies);
      check(`${client} installs no ${what}`, outcome.status !== 0, outcome.text);
      row(`install a ${what}`, client, outcome, ...marks);
    }
    rmSync(join(locked[client], 'node_modules'), { recursive: true, force: true });
    const frozen = how.program(how.frozen, locked[client], join(work, `empty-${client}`));
    check(`${client} installs no blocked version that is locked`, frozen.status !== 0 || installed(locked[client], 'bwl-leaf') === 'nothing', frozen.text);
    row('install a blocked version that is locked', client, frozen, ...marks);
  }
  const token = join(work, 'operator.token');
  writeFileSync(token, OPERATOR_TOKEN, { mode: 0o600 });
  const locks = { npm: 'package-lock.json', pnpm: 'pnpm-lock.yaml', yarn: 'yarn.lock', bun: 'bun.lock' };
  for (const client of Object.keys(clients)) {
    const lock = join(ofUpstream[client], locks[client.split(' ')[0]]);
    const found = run(BOWLINE, ['libraries', 'check', lock, '--organization', owner.organization, '--api', BASE_URL, '--token-file', token], work);
    const refused = found.text.split('\n').some((line) => line.includes('pkg:npm/bwl-outer@1.1.0') && line.includes('COOLDOWN'));
    check(`what a policy refuses is found in the lock file of ${client}`, found.status === 1 && refused, found.text);
  }
  // Packages of upstreams must have been public for seven days, which own ones need not.
  for (const [client, how] of Object.entries(clients)) {
    const outcome = install(how, own, { 'bwl-outer': '1.1.0' });
    check(`${client} installs no young version`, outcome.status !== 0, outcome.text);
    row('install a young version', client, outcome, ...marks);
    rmSync(join(ofUpstream[client], 'node_modules'), { recursive: true, force: true });
    const frozen = how.program(how.frozen, ofUpstream[client], join(work, `young-${client}`));
    check(`${client} installs no young version that is locked`, frozen.status !== 0 || installed(ofUpstream[client], 'bwl-outer') === 'nothing', frozen.text);
  }
  await call('PUT', `/libraries/v1/policies/${policy.id}`, { name: 'no-new', cooldownDays: 0, blockList: [{ purl: 'pkg:npm/bwl-leaf@1.2.0' }] });
  for (const [client, how] of Object.entries(clients)) {
    const outcome = how.program(how.frozen, ofUpstream[client], join(work, `old-${client}`));
    check(`${client} installs what is locked once there is no cooldown`, outcome.status === 0 && installed(ofUpstream[client], 'bwl-outer') === '1.1.0', outcome.text);
  }
  // As of the time when the first version had been published, and the second one had not.
  const document = await (await request(own, 'bwl-outer')).json();
  const then = document.time['1.0.0'];
  const few = JAVASCRIPT_WHOLE ? clients : { 'npm 12.2.2': clients['npm 12.2.2'] };
  for (const [client, how] of Object.entries(few)) {
    const dated = registry(owner, `@${then}`);
    const outcome = install(how, dated, { 'bwl-outer': '^1.0.0' });
    check(`${client} installs what had been published at a time`, outcome.status === 0 && installed(outcome.directory, 'bwl-outer') === '1.0.0', outcome.text);
    const later = install(how, dated, { 'bwl-outer': '1.1.0' });
    check(`${client} installs nothing that was published later than a time`, later.status !== 0, later.text);
  }
  await call('POST', `/packagefreezes/v1/organizations/${owner.organization}:freeze`, { cutoffTime: then, justification: 'a worm is about' });
  for (const [client, how] of Object.entries(few)) {
    const outcome = install(how, own, { 'bwl-outer': '^1.0.0' });
    check(`${client} passes over a frozen version`, outcome.status === 0 && installed(outcome.directory, 'bwl-outer') === '1.0.0', outcome.text);
    const frozen = install(how, own, { 'bwl-outer': '1.1.0' });
    check(`${client} installs no frozen version`, frozen.status !== 0, frozen.text);
    row('install a frozen version', client, frozen, ...marks, 'Blocked by');
  }
  await call('POST', `/packagefreezes/v1/organizations/${owner.organization}:liftFreeze`, {});
  await refuseVulnerable(policy.id, 'npm', 'bwl-outer', '1.1.0');
  for (const [client, how] of Object.entries(few)) {
    const fixed = install(how, own, { 'bwl-outer': '^1.0.0' });
    check(`${client} installs the fixed version`, fixed.status === 0 && installed(fixed.directory, 'bwl-outer') === '1.1.0', fixed.text);
    const vulnerable = install(how, own, { 'bwl-outer': '1.0.0' });
    check(`${client} installs no vulnerable version`, vulnerable.status !== 0, vulnerable.text);
    row('install a vulnerable version', client, vulnerable, ...marks);
  }
  await call('PUT', `/libraries/v1/policies/${policy.id}`, { name: 'no-new', cooldownDays: 7 });
  await call('POST', `/packageexceptions/v1/organizations/${owner.organization}:createException`, { purl: 'pkg:npm/bwl-outer@1.1.0', justification: 'mends a fault' });
  for (const [client, how] of Object.entries(few)) {
    const outcome = install(how, own, { 'bwl-outer': '^1.0.0' });
    check(`${client} installs a young version with an exception`, outcome.status === 0 && installed(outcome.directory, 'bwl-outer') === '1.1.0', outcome.text);
  }
  check('npm shows why', rows.filter((one) => /^install a blocked version \| npm 12/.test(one)).every((one) => one.includes('Blocked by policy no-new')), rows.join('\n'));

  if (UPDATE_GOLDEN && JAVASCRIPT_WHOLE) writeFileSync(golden, `${rows.join('\n')}\n`);
  const known = readFileSync(golden, 'utf8').trim().split('\n');
  check('what clients print is in the golden table', rows.every((line) => known.includes(line)) && (!JAVASCRIPT_WHOLE || known.length === rows.length), rows.join('\n'));
  console.log(`\npackages-javascript: ${checks()} checks passed`);
} catch (error) {
  console.error(`packages-javascript: FAILED after ${checks()} checks: ${error.stack}`);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
