// Hosts of packages with the installers and publishers that people have: publish, install, pin and lock, and what each of
// them shows where something is refused, as a golden table.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE                    its binary
//   PROVIDER                   provider.json of the identity provider
//   PYTHON                     directory with the virtual environments `venv`, `old`, `poetry` and `pdm`
//   UPDATE_GOLDEN=1            write the table of what each client prints again
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdtempSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { call, check, checks, owned, refuseVulnerable } from '../lib.mjs';

const { BASE_URL, BOWLINE, PYTHON, UPDATE_GOLDEN } = process.env;
const here = dirname(fileURLToPath(import.meta.url));
const golden = join(here, 'golden.txt');
const host = new URL(BASE_URL).host;
const work = mkdtempSync(join(tmpdir(), 'packages.'));
const rows = [];

/** Runs a program with nothing of this machine's settings. */
function run(command, args, env = {}, cwd = work) {
  const clean = { HOME: work, PATH: process.env.PATH, PIP_CONFIG_FILE: '/dev/null', PIP_DISABLE_PIP_VERSION_CHECK: '1', PIP_NO_INPUT: '1', UV_NO_CONFIG: '1', UV_CACHE_DIR: join(work, 'uv'), COLUMNS: '1000', ...env };
  const { status, stdout, stderr, error } = spawnSync(command, args, { env: clean, cwd, encoding: 'utf8', timeout: 120_000 });
  if (error) throw error;
  return { status, text: stdout + stderr };
}

const program = (name) => join(PYTHON, 'venv/bin', name);
let targets = 0;
/** A directory that nothing was installed to. */
const target = () => join(work, `target-${(targets += 1)}`);

/** The clients that install, each as a function from an index and packages to what happened. */
const installers = {
  'pip 26.3': (index, ...packages) => run(program('pip'), ['install', '--no-deps', '--no-cache-dir', '--retries', '0', '--target', target(), '--index-url', index, ...packages]),
  'pip 23.2.1': (index, ...packages) => run(join(PYTHON, 'old/bin/pip'), ['install', '--no-deps', '--no-cache-dir', '--retries', '0', '--target', target(), '--index-url', index, ...packages]),
  'uv 0.13.9': (index, ...packages) => run(program('uv'), ['pip', 'install', '--no-deps', '--no-cache', '--python', program('python'), '--target', target(), '--index-url', index, ...packages]),
};

/** An index address with a user name and a password, and a group. */
function index(user, password, group = '') {
  return `http://${encodeURIComponent(user)}:${encodeURIComponent(password)}@${host}/libraries/python${group && `/~${group}`}/simple/`;
}

function make(name, version, ...headers) {
  const directory = join(work, 'dist', `${name}-${version}-${(targets += 1)}`);
  const made = run('python3', [join(here, 'make.py'), directory, name, version, ...headers]);
  if (made.status !== 0) throw new Error(made.text);
  return readdirSync(directory).sort().map((file) => join(directory, file));
}

function twine(owner, files, ...more) {
  return run(program('twine'), ['upload', '--non-interactive', '--disable-progress-bar', '--repository-url', `${BASE_URL}/libraries/python/legacy/`, ...more, ...files], { TWINE_USERNAME: owner.identity, TWINE_PASSWORD: owner.upstream });
}

function uvPublish(owner, files, ...more) {
  return run(program('uv'), ['publish', '--publish-url', `${BASE_URL}/libraries/python/legacy/`, '--username', owner.identity, '--password', owner.upstream, '--trusted-publishing', 'never', ...more, ...files]);
}

const PROVENANCE = 'https://slsa.dev/provenance/v1';

/** Writes an attestation (PEP 740) beside a file, about this file or another one. Certificate and signature are only base64. */
function attest(file, about = file) {
  const sha256 = createHash('sha256').update(readFileSync(about)).digest('hex');
  const statement = { _type: 'https://in-toto.io/Statement/v1', subject: [{ name: basename(about), digest: { sha256 } }], predicateType: PROVENANCE, predicate: {} };
  const base64 = (text) => Buffer.from(text).toString('base64');
  const attestation = { version: 1, verification_material: { certificate: base64('certificate'), transparency_entries: [{ logIndex: '1' }] }, envelope: { statement: base64(JSON.stringify(statement)), signature: base64('signature') } };
  const beside = `${file}.publish.attestation`;
  writeFileSync(beside, JSON.stringify(attestation));
  return { beside, attestation };
}

/** The response to a request of an owner for a path of the index, or for an address. */
function get(owner, path, accept) {
  const authorization = `Basic ${Buffer.from(`${owner.identity}:${owner.upstream}`).toString('base64')}`;
  return fetch(new URL(path, `${BASE_URL}/libraries/python/`), { headers: { accept, authorization } });
}

/** A directory with a project of this dependency, and the index as its only source. */
function project(kind, dependency, source, name = 'app') {
  const directory = join(work, `${kind}-${(targets += 1)}`);
  mkdirSync(directory);
  writeFileSync(join(directory, 'pyproject.toml'), `[project]\nname = "${name}"\nversion = "1.0"\nrequires-python = ">=3.9"\ndependencies = [${JSON.stringify(dependency)}]\n${source}`);
  return directory;
}

const account = (kind, owner) => ({
  poetry: { POETRY_HTTP_BASIC_OWN_USERNAME: owner.identity, POETRY_HTTP_BASIC_OWN_PASSWORD: owner.upstream, POETRY_REPOSITORIES_OWN_URL: `${BASE_URL}/libraries/python/legacy/`, POETRY_VIRTUALENVS_IN_PROJECT: '1' },
  pdm: { PDM_CHECK_UPDATE: '0', PDM_PUBLISH_USERNAME: owner.identity, PDM_PUBLISH_PASSWORD: owner.upstream, INDEX: index(owner.identity.replace('/', '_'), owner.upstream) },
})[kind];

/** Publishes the files of a project as if they were built there. */
function publishFrom(kind, owner, files) {
  const directory = project(kind, 'none', '', `bwl-${kind}`);
  mkdirSync(join(directory, 'dist'));
  for (const file of files) copyFileSync(file, join(directory, 'dist', basename(file)));
  const args = { poetry: ['publish', '-n', '-r', 'own', '--dist-dir', 'dist'], pdm: ['publish', '--no-build', '--repository', `${BASE_URL}/libraries/python/legacy/`] }[kind];
  return run(join(PYTHON, kind, 'bin', kind), args, account(kind, owner), directory);
}

/** Locks and installs a dependency from the index alone. */
function installFrom(kind, owner, dependency) {
  const source = {
    poetry: `[tool.poetry]\npackage-mode = false\n[[tool.poetry.source]]\nname = "own"\nurl = "${BASE_URL}/libraries/python/simple/"\npriority = "primary"\n`,
    pdm: '[[tool.pdm.source]]\nname = "pypi"\nurl = "${INDEX}"\n',
  }[kind];
  const directory = project(kind, dependency, source);
  const args = { poetry: ['install', '-n'], pdm: ['install', '--no-self'] }[kind];
  return run(join(PYTHON, kind, 'bin', kind), args, account(kind, owner), directory);
}

/** What a client showed of a sentence: the lines that have a part of it, without what differs from run to run. */
function shown(text, ...marks) {
  const plain = text.replaceAll(/\x1b\[[0-9;]*m/g, '').replaceAll(BASE_URL, 'BASE').replaceAll(host, 'HOST').replaceAll(/[0-9a-f]{64}/g, 'SHA256').replaceAll(/[0-9a-f]{40}([\/_][0-9a-f]{16})*/g, 'UID').replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
  const lines = plain.split('\n').map((line) => line.trim()).filter((line) => marks.some((mark) => line.includes(mark)));
  // A client that lists the reasons of several files has a second line for one that was uploaded in another second.
  const different = [...new Set(lines)].filter((line, _, all) => !all.some((other) => other !== line && other.endsWith(line)));
  return different.join(' / ') || 'nothing';
}

function row(what, client, outcome, ...marks) {
  rows.push(`${what} | ${client} | ${outcome.status === 0 ? 'succeeds' : 'fails'} | ${shown(outcome.text, ...marks)}`);
}

try {
  const owner = await owned('packers', 'walk-packages');
  const stranger = await owned('strangers', 'walk-packages-stranger');
  const own = index(owner.identity.replace('/', '_'), owner.upstream);

  // ---- publish ---------------------------------------------------------------------------------------
  const first = make('bwl-example', '1.0', 'License-Expression: MIT', 'Requires-Python: >=3.8');
  const published = twine(owner, first);
  check('twine publishes a wheel and an sdist', published.status === 0, published.text);
  const second = make('bwl-example', '1.1', 'License-Expression: MIT');
  const byUv = uvPublish(owner, second);
  check('uv publishes', byUv.status === 0, byUv.text);
  check('twine publishes the same bytes again', twine(owner, first).status === 0);
  const changed = make('bwl-example', '1.0', 'License-Expression: MIT', 'Keywords: changed');
  for (const [client, outcome] of [['twine 6.2.0', twine(owner, changed)], ['uv 0.13.9', uvPublish(owner, changed)]]) {
    check(`${client} does not change a published file`, outcome.status !== 0, outcome.text);
    row('publish other bytes', client, outcome, 'already exists', 'publish another version');
  }
  // twine has --skip-existing for the public index alone.
  const skipped = uvPublish(owner, first, '--check-url', own);
  check('uv skips what the index has', skipped.status === 0 && /already exists|skipping/i.test(skipped.text), skipped.text);
  const wrong = { ...owner, upstream: 'wrong' };
  for (const [client, outcome] of [['twine 6.2.0', twine(wrong, first)], ['uv 0.13.9', uvPublish(wrong, first)]]) {
    check(`${client} publishes nothing with a wrong token`, outcome.status !== 0, outcome.text);
    row('publish with a wrong token', client, outcome, '401', 'credentials', 'token');
  }

  // ---- install, pin, lock ----------------------------------------------------------------------------
  for (const [client, install] of Object.entries(installers)) {
    const newest = install(own, 'bwl-example');
    check(`${client} installs the highest version`, newest.status === 0 && /bwl[-_]example[-=]+1\.1/.test(newest.text), newest.text);
    const pinned = install(own, 'bwl_Example==1.0');
    check(`${client} installs a pinned version by another spelling`, pinned.status === 0 && /1\.0/.test(pinned.text), pinned.text);
    // pip takes what stands before an escaped slash for the host.
    const escaped = client.startsWith('pip') ? undefined : install(index(owner.identity, owner.upstream), 'bwl-example');
    if (escaped) check(`${client} takes the UIDP with its slash`, escaped.status === 0, escaped.text);
    for (const [what, address] of [['with a wrong token', index(owner.identity.replace('/', '_'), 'wrong')], ['of another organization', index(stranger.identity.replace('/', '_'), stranger.upstream, owner.organization)], ['that is not there', own]]) {
      const outcome = install(address, what === 'that is not there' ? 'bwl-absent' : 'bwl-example');
      check(`${client} installs nothing ${what}`, outcome.status !== 0, outcome.text);
      row(`install ${what}`, client, outcome, 'ERROR: No matching', '401', '403', 'not found', 'credentials');
    }
  }
  const requirements = join(work, 'requirements.in');
  writeFileSync(requirements, 'bwl-example\n');
  const locked = join(work, 'requirements.txt');
  const lock = run(program('uv'), ['pip', 'compile', '--no-cache', '--generate-hashes', '--index-url', own, '-o', locked, requirements]);
  check('uv locks with hashes', lock.status === 0 && readFileSync(locked, 'utf8').includes('--hash=sha256:'), lock.text);
  const frozen = installers['pip 26.3'](own, '--require-hashes', '-r', locked);
  check('pip installs what uv locked', frozen.status === 0, frozen.text);
  const ofUv = project('uv', 'bwl-example', `[[tool.uv.index]]\nname = "own"\nurl = "${BASE_URL}/libraries/python/simple/"\ndefault = true\n`);
  const settings = { UV_NO_CONFIG: '0', UV_INDEX_OWN_USERNAME: owner.identity, UV_INDEX_OWN_PASSWORD: owner.upstream, UV_PYTHON: program('python') };
  for (const args of [['lock'], ['lock', '--check'], ['sync', '--frozen', '--no-install-project']]) {
    const outcome = run(program('uv'), [...args, '--no-cache', '--project', ofUv], settings);
    check(`uv ${args.join(' ')} succeeds`, outcome.status === 0, outcome.text);
  }

  for (const kind of ['poetry', 'pdm']) {
    const files = make(`bwl-${kind}`, '1.0', 'License-Expression: MIT');
    const published = publishFrom(kind, owner, files);
    check(`${kind} publishes`, published.status === 0, published.text);
    check(`${kind} publishes the same bytes again`, publishFrom(kind, owner, files).status === 0);
    const other = publishFrom(kind, owner, make(`bwl-${kind}`, '1.0', 'License-Expression: MIT', 'Keywords: changed'));
    check(`${kind} does not change a published file`, other.status !== 0, other.text);
    row('publish other bytes', kind, other, 'already exists', 'files do not change');
    const installed = installFrom(kind, owner, `bwl-${kind}`);
    check(`${kind} locks and installs`, installed.status === 0, installed.text);
  }

  // ---- with signed statements --------------------------------------------------------------------------
  // The server has no trusted root: it stores attestations without verifying their signatures.
  const [plain] = second.filter((file) => file.endsWith('.whl'));
  const publishers = {
    'twine 6.2.0': (file, beside) => twine(owner, [file, beside], '--attestations'),
    // uv sends attestations that are among its arguments, not all that lie beside a file.
    'uv 0.13.9': (file, beside) => uvPublish(owner, [file, beside]),
  };
  for (const [client, publish] of Object.entries(publishers)) {
    const name = `bwl-attested-by-${client.split(' ')[0]}`;
    const [wheel] = make(name, '1.0', 'License-Expression: MIT').filter((file) => file.endsWith('.whl'));
    const of = basename(wheel);
    const other = publish(wheel, attest(wheel, plain).beside);
    check(`${client} shows that an attestation is of another file`, other.status !== 0 && other.text.includes(`attestation 1 is not about ${of}`), other.text);
    row('publish with an attestation of another file', client, other, 'is not about');
    check(`a file that ${client} sends with an attestation of another file is not published`, (await get(owner, `simple/${name}/`, '*/*')).status === 404);
    const { beside, attestation } = attest(wheel);
    const published = publish(wheel, beside);
    check(`${client} publishes a wheel with an attestation`, published.status === 0, published.text);
    check(`${client} publishes the same wheel and attestation again`, publish(wheel, beside).status === 0);
    // uv shows no text of a success.
    if (client.startsWith('twine')) {
      const [said] = make('bwl-attested-verbosely', '1.0', 'License-Expression: MIT').filter((file) => file.endsWith('.whl'));
      const verbose = twine(owner, [said, attest(said).beside], '--attestations', '--verbose');
      check(`${client} --verbose shows that the attestation is not verified`, verbose.status === 0 && verbose.text.includes('not verified: this server has no trusted root'), verbose.text);
    }
    const late = publish(plain, attest(plain).beside);
    check(`${client} does not add an attestation to a published file`, late.status !== 0, late.text);
    row('publish an attestation of a published file', client, late, 'already exists');

    const page = await (await get(owner, `simple/${name}/`, 'application/vnd.pypi.simple.v1+json')).json();
    const address = page.files[0].provenance;
    check(`the page of ${name} has the address of the provenance`, address === `${BASE_URL}/libraries/python/integrity/${name}/1.0/${of}/provenance`, JSON.stringify(page));
    const html = await (await get(owner, `simple/${name}/`, 'text/html')).text();
    check(`the page of ${name} has it in HTML`, html.includes(`data-provenance="${address}"`), html);
    const response = await get(owner, address, 'application/vnd.pypi.integrity.v1+json');
    const provenance = await response.json();
    const expected = { version: 1, attestation_bundles: [{ publisher: { kind: 'unverified', claims: null }, attestations: [attestation] }] };
    check(`the provenance of ${name} has the attestation, which is not verified`, response.headers.get('x-bowline-attestations') === 'unverified' && isDeepStrictEqual(provenance, expected), JSON.stringify(provenance));
    check(`the provenance of ${name} needs credentials`, (await fetch(address)).status === 401);
  }
  for (const [client, install] of Object.entries(installers)) {
    const outcome = install(own, 'bwl-attested-by-twine', 'bwl-attested-by-uv');
    check(`${client} installs wheels with attestations`, outcome.status === 0, outcome.text);
  }

  // ---- configured by the command line, with the account in .netrc -------------------------------------
  const home = join(work, 'home');
  for (const client of ['pip', 'uv', 'pdm', 'poetry', 'twine']) {
    const written = run(BOWLINE, ['libraries', 'configure', client, '--api', BASE_URL, '--root', home, '--write']);
    check(`the file of ${client} is written`, written.status === 0, written.text);
  }
  writeFileSync(join(home, '.netrc'), `machine ${host.split(':')[0]} login ${owner.identity} password ${owner.upstream}\n`, { mode: 0o600 });
  const configured = { HOME: home, PIP_CONFIG_FILE: join(home, '.config/pip/pip.conf'), UV_NO_CONFIG: '0', NETRC: join(home, '.netrc') };
  const byPip = run(program('pip'), ['install', '--no-deps', '--no-cache-dir', '--target', target(), 'bwl-example'], configured);
  check('pip installs by its file', byPip.status === 0, byPip.text);
  const byUvFile = run(program('uv'), ['pip', 'install', '--no-deps', '--no-cache', '--python', program('python'), '--target', target(), 'bwl-example'], configured);
  check('uv installs by its file', byUvFile.status === 0, byUvFile.text);
  const anonymous = run(program('uv'), ['pip', 'install', '--no-deps', '--no-cache', '--python', program('python'), '--target', target(), 'bwl-example'], { ...configured, NETRC: '/dev/null' });
  check('uv says that an account is missing', anonymous.status !== 0 && /credential/i.test(anonymous.text), anonymous.text);
  const byPdm = run(join(PYTHON, 'pdm/bin/pdm'), ['lock'], { ...configured, PDM_CHECK_UPDATE: '0' }, project('pdm', 'bwl-example', ''));
  check('pdm locks by its file', byPdm.status === 0, byPdm.text);
  const files = make('bwl-configured', '1.0', 'License-Expression: MIT');
  const byTwine = run(program('twine'), ['upload', '--non-interactive', '--disable-progress-bar', '-r', 'bowline', ...files], { ...configured, TWINE_USERNAME: owner.identity, TWINE_PASSWORD: owner.upstream });
  check('twine publishes by its file', byTwine.status === 0, byTwine.text);
  const uvAgain = run(program('uv'), ['publish', '--trusted-publishing', 'never', ...files], { ...configured, UV_PUBLISH_USERNAME: owner.identity, UV_PUBLISH_PASSWORD: owner.upstream });
  check('uv publishes by its file', uvAgain.status === 0, uvAgain.text);
  const ofPoetry = project('poetry', 'none', '', 'bwl-configured');
  mkdirSync(join(ofPoetry, 'dist'));
  for (const file of files) copyFileSync(file, join(ofPoetry, 'dist', basename(file)));
  const byPoetry = run(join(PYTHON, 'poetry/bin/poetry'), ['publish', '-n', '-r', 'bowline', '--dist-dir', 'dist'], { ...configured, POETRY_HTTP_BASIC_BOWLINE_USERNAME: owner.identity, POETRY_HTTP_BASIC_BOWLINE_PASSWORD: owner.upstream }, ofPoetry);
  check('poetry publishes by its file', byPoetry.status === 0, byPoetry.text);

  // ---- with tokens of a sign-in, from the keyring -----------------------------------------------------
  const person = join(work, 'person');
  const links = join(person, 'bin');
  mkdirSync(links, { recursive: true });
  const keyring = { HOME: person, PATH: `${links}:${process.env.PATH}`, NETRC: '/dev/null', PIP_KEYRING_PROVIDER: 'subprocess', UV_KEYRING_PROVIDER: 'subprocess', UV_NO_CONFIG: '0' };
  for (const args of [['context', 'set', 'here', '--api', BASE_URL], ['libraries', 'configure', 'keyring', '--directory', links], ['libraries', 'configure', 'uv', '--write']]) {
    const outcome = run(BOWLINE, args, keyring);
    check(`bowline ${args.slice(0, 3).join(' ')} succeeds`, outcome.status === 0, outcome.text);
  }
  const simple = `${BASE_URL}/libraries/python/simple/`;
  const byKeyring = {
    'pip 26.3': () => run(program('pip'), ['install', '--no-deps', '--no-cache-dir', '--retries', '0', '--target', target(), '--index-url', simple, 'bwl-example'], keyring),
    'pip 23.2.1': () => run(join(PYTHON, 'old/bin/pip'), ['install', '--no-deps', '--no-cache-dir', '--retries', '0', '--target', target(), '--index-url', simple.replace('://', '://_token@'), 'bwl-example'], keyring),
    'uv 0.13.9': () => run(program('uv'), ['pip', 'install', '--no-deps', '--no-cache', '--python', program('python'), '--target', target(), 'bwl-example'], keyring),
  };
  for (const [client, install] of Object.entries(byKeyring)) {
    const outcome = install();
    check(`${client} gets no token without a sign-in`, outcome.status !== 0, outcome.text);
    if (client !== 'pip 26.3') check(`${client} shows how to sign in`, outcome.text.includes('sign in with: bowline auth login'), outcome.text);
  }
  const signedIn = run(BOWLINE, ['auth', 'login', '--identity', owner.identity, '--identity-token', owner.upstream], keyring);
  check('a person signs in', signedIn.status === 0, signedIn.text);
  for (const [client, install] of Object.entries(byKeyring)) {
    const outcome = install();
    check(`${client} installs with a token from the keyring`, outcome.status === 0 && /bwl[-_]example[-=]+1\.1/.test(outcome.text), outcome.text);
  }

  // ---- from an upstream: the index of another organization ---------------------------------------------
  const outside = await owned('outsiders', 'walk-packages-outside');
  const outer = [make('bwl-outer', '1.0', 'License-Expression: MIT'), make('bwl-outer', '1.1', 'License-Expression: MIT')];
  check('another organization publishes', twine(outside, outer.flat()).status === 0);
  const upstream = { name: 'outside', ecosystem: 'PYTHON', url: `${BASE_URL}/libraries/python/~${outside.organization}/simple/`, username: outside.identity, password: outside.upstream };
  await call('POST', `/packageupstreams/v1/organizations/${owner.organization}:setUpstream`, { upstream });
  for (const [client, install] of Object.entries(installers)) {
    for (const wanted of ['bwl-outer', 'bwl-outer==1.0']) {
      const outcome = install(own, wanted);
      check(`${client} installs ${wanted} from an upstream`, outcome.status === 0, outcome.text);
    }
  }
  writeFileSync(requirements, 'bwl-outer\nbwl-example\n');
  const mixed = run(program('uv'), ['pip', 'compile', '--no-cache', '--generate-hashes', '--index-url', own, '-o', locked, requirements]);
  check('uv locks own packages and those of an upstream', mixed.status === 0, mixed.text);
  const both = installers['pip 26.3'](own, '--require-hashes', '-r', locked);
  check('pip installs both by their hashes', both.status === 0, both.text);
  for (const kind of ['poetry', 'pdm']) {
    const outcome = installFrom(kind, owner, 'bwl-outer');
    check(`${kind} installs from an upstream`, outcome.status === 0, outcome.text);
  }

  // ---- withdrawn and withheld ------------------------------------------------------------------------
  await call('POST', `/pythonpackages/v1/groups/${owner.organization}:yankVersion`, { package: 'bwl-example', version: '1.1', reason: 'It lost data.' });
  for (const [client, install] of Object.entries(installers)) {
    const outcome = install(own, 'bwl-example');
    check(`${client} passes over a withdrawn version`, outcome.status === 0 && /1\.0/.test(outcome.text), outcome.text);
    row('install a withdrawn version', client, install(own, 'bwl-example==1.1'), 'yanked', 'It lost data.');
  }
  const policy = await call('POST', `/libraries/v1/policies/${owner.organization}`, { name: 'no-old', blockList: [{ purl: 'pkg:pypi/bwl-example@1.0' }, { purl: 'pkg:pypi/bwl-bad' }] });
  await call('POST', `/libraries/v1/policy-bindings/${owner.organization}`, { policy: policy.id, ecosystem: 'PYTHON', mode: 'LIBRARY_POLICY_BINDING_MODE_ENFORCED' });
  check('a package that is blocked is published', twine(owner, make('bwl-bad', '2.0')).status === 0);
  for (const [client, install] of Object.entries(installers)) {
    for (const [what, name] of [['blocked version', 'bwl-example==1.0'], ['blocked package', 'bwl-bad']]) {
      const outcome = install(own, name);
      check(`${client} installs no ${what}`, outcome.status !== 0, outcome.text);
      row(`install a ${what}`, client, outcome, 'Blocked by policy', 'ERROR: No matching', 'ERROR: HTTP');
    }
  }
  // Packages of upstreams must have been public for seven days, which own ones need not.
  for (const [client, install] of Object.entries(installers)) {
    for (const [what, name] of [['young version', 'bwl-outer==1.0'], ['package of young versions', 'bwl-outer']]) {
      const outcome = install(own, name);
      check(`${client} installs no ${what}`, outcome.status !== 0, outcome.text);
      row(`install a ${what}`, client, outcome, 'Blocked by policy', 'ERROR: No matching', 'ERROR: HTTP');
    }
  }
  for (const kind of ['poetry', 'pdm']) {
    const outcome = installFrom(kind, owner, 'bwl-outer==1.0');
    check(`${kind} installs no young version`, outcome.status !== 0, outcome.text);
    row('install a young version', kind, outcome, 'Blocked by policy', '403');
  }
  const exception = await call('POST', `/packageexceptions/v1/organizations/${owner.organization}:createException`, { purl: 'pkg:pypi/bwl-outer@1.0', justification: 'mends a fault' });
  for (const [client, install] of Object.entries(installers)) {
    const outcome = install(own, 'bwl-outer');
    check(`${client} installs a young version with an exception, and not the one without`, outcome.status === 0 && /bwl[-_]outer[-=]+1\.0/.test(outcome.text), outcome.text);
  }
  await call('POST', `/packageexceptions/v1/exceptions/${exception.uid}:end`, {});
  for (const [client, install] of Object.entries(installers)) check(`${client} installs no young version whose exception has ended`, install(own, 'bwl-outer==1.0').status !== 0);
  await call('PUT', `/libraries/v1/policies/${policy.id}`, { name: 'no-old', cooldownDays: 0, blockList: [{ purl: 'pkg:pypi/bwl-example@1.0' }, { purl: 'pkg:pypi/bwl-bad' }] });
  for (const [client, install] of Object.entries(installers)) {
    const outcome = install(own, 'bwl-outer');
    check(`${client} installs once there is no cooldown`, outcome.status === 0, outcome.text);
  }
  // As of the time when the first version had been published, and the second one had not.
  const page = await (await get(owner, 'simple/bwl-outer/', 'application/vnd.pypi.simple.v1+json')).json();
  const wheel = page.files.find(({ filename }) => filename === 'bwl_outer-1.0-py3-none-any.whl');
  const then = wheel['upload-time'];
  for (const [client, install] of Object.entries(installers)) {
    const dated = index(owner.identity.replace('/', '_'), owner.upstream, `@${then}`);
    const outcome = install(dated, 'bwl-outer');
    check(`${client} installs what had been published at a time`, outcome.status === 0 && /bwl[-_]outer[-=]+1\.0/.test(outcome.text), outcome.text);
    const later = install(dated, 'bwl-outer==1.1');
    check(`${client} installs nothing that was published later than a time`, later.status !== 0, later.text);
  }
  await call('POST', `/packagefreezes/v1/organizations/${owner.organization}:freeze`, { cutoffTime: then, justification: 'a worm is about' });
  for (const [client, install] of Object.entries(installers)) {
    const outcome = install(own, 'bwl-outer');
    check(`${client} passes over a frozen version`, outcome.status === 0 && /bwl[-_]outer[-=]+1\.0/.test(outcome.text), outcome.text);
    const frozen = install(own, 'bwl-outer==1.1');
    check(`${client} installs no frozen version`, frozen.status !== 0, frozen.text);
    row('install a frozen version', client, frozen, 'Blocked by', 'ERROR: No matching', 'ERROR: HTTP');
  }
  await call('POST', `/packagefreezes/v1/organizations/${owner.organization}:liftFreeze`, {});
  await refuseVulnerable(policy.id, 'PyPI', 'bwl-outer', '1.1');
  for (const [client, install] of Object.entries(installers)) {
    const fixed = install(own, 'bwl-outer');
    check(`${client} installs the fixed version`, fixed.status === 0 && /bwl[-_]outer[-=]+1\.1/.test(fixed.text), fixed.text);
    const vulnerable = install(own, 'bwl-outer==1.0');
    check(`${client} installs no vulnerable version`, vulnerable.status !== 0, vulnerable.text);
    row('install a vulnerable version', client, vulnerable, 'Blocked by', 'ERROR: No matching', 'ERROR: HTTP');
  }
  for (const kind of ['poetry', 'pdm']) {
    const outcome = installFrom(kind, owner, 'bwl-example==1.0');
    check(`${kind} installs no blocked version`, outcome.status !== 0, outcome.text);
    row('install a blocked version', kind, outcome, 'Blocked by policy', '403');
  }
  check('pip shows why', rows.filter((one) => one.startsWith('install a blocked version | pip')).every((one) => one.includes('Blocked by policy no-old')), rows.join('\n'));
  check('uv shows why', rows.filter((one) => /^install a blocked .* \| uv/.test(one)).every((one) => one.includes('Blocked by policy no-old')), rows.join('\n'));
  // They are written every two seconds.
  let recorded;
  for (let tries = 0; tries < 50 && !(recorded?.attemptCount >= Object.keys(installers).length); tries += 1) {
    await new Promise((done) => setTimeout(done, 200));
    const events = (await call('GET', `/libraries/v1/blocked-packages?parentId=${owner.organization}`)).items ?? [];
    recorded = events.find(({ purl, reason }) => purl === 'pkg:pypi/bwl-example@1.0' && reason === 'BLOCK_LIST');
  }
  check('refused downloads of all installers are recorded', recorded?.attemptCount >= Object.keys(installers).length, JSON.stringify(recorded));

  const text = `${rows.join('\n')}\n`;
  if (UPDATE_GOLDEN) writeFileSync(golden, text);
  check('what clients print is the golden table', readFileSync(golden, 'utf8') === text, text);
  console.log(`\npackages: ${checks()} checks passed`);
} catch (error) {
  console.error(`packages: FAILED after ${checks()} checks: ${error.stack}`);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
