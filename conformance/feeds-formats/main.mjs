// What `bowline feeds export` writes, judged by software of others: CSAF by the validator of Secvisogram (schema and
// mandatory tests), CycloneDX by the schemas that its JavaScript library ships, OpenVEX by its Go library; archives by
// unzip. What they take is read in again by the command line, and exported as the same bytes.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE                    its binary
//   PROVIDER                   provider.json of the identity provider
//   FEEDS_MODULES              where the packages of package.json are
//   OPENVEX                    the program that drives the library of OpenVEX
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check, checks, owned } from '../lib.mjs';

const { BASE_URL, BOWLINE, FEEDS_MODULES, OPENVEX } = process.env;
const work = mkdtempSync(join(tmpdir(), 'feeds-formats.'));
const modules = join(FEEDS_MODULES, 'node_modules');
const require = createRequire(join(FEEDS_MODULES, 'package.json'));
const imported = (path) => import(pathToFileURL(join(modules, path)));

function run(command, ...args) {
  const env = { HOME: work, PATH: process.env.PATH };
  const { status, stdout, stderr, error } = spawnSync(command, args, { env, encoding: 'utf8', timeout: 120_000 });
  if (error) throw error;
  return { status, stdout: stdout.trim(), stderr: stderr.trim() };
}

function succeeds(what, { status, stdout, stderr }) {
  check(what, status === 0, `ended with ${status}: ${stdout} ${stderr}`);
  return stdout;
}

const bowline = (...args) => run(BOWLINE, ...args, '--api', BASE_URL);
const files = (directory) =>
  readdirSync(directory, { recursive: true }).filter((name) => statSync(join(directory, name)).isFile()).sort();
const read = (directory, name) => readFileSync(join(directory, name));
const json = (directory, name) => JSON.parse(read(directory, name));

// ---- the judgements: every kind, with and without a component, of three kinds of artifacts ----------

const judgements = [
  'type: detection/manual',
  'type: true-positive\n        data: {note: Upgrade soon.}',
  'type: false-positive\n        data: {reason: vulnerable-code-not-included-in-package, note: "Left out: see the build."}',
  'type: false-positive\n        data: {reason: component-vulnerability-mismatch}',
  'type: false-positive\n        data: {reason: vulnerable-code-not-in-execution-path}',
  'type: false-positive\n        data: {reason: vulnerable-code-cannot-be-controlled-by-adversary}',
  'type: false-positive\n        data: {reason: inline-mitigations-exist}',
  'type: fixed\n        data: {version: 1.2.3-r4, note: Backported.}',
  'type: patched\n        data: {versions: [1.2.3-r1, 1.1.9-r0]}',
  'type: fix-not-planned',
  'type: pending-upstream-fix',
  'type: analysis-not-planned',
];
const components = ['', '    component: {type: go-module, name: golang.org/x/net, location: usr/bin/a}\n'];

/** An artifact with an advisory for each judgement. */
function artifact(kind, name, place, own) {
  const entries = judgements.flatMap((judgement, at) =>
    (own === undefined ? components : [own]).map((component, part) => {
      const id = `BWL-222${place}-222${part + 2}-22${[...'23456789cfgh'][at]}2`;
      const ids = `  - id: ${id}\n    aliases: [CVE-2026-${1000 + at}, GHSA-2222-2222-22${[...'23456789cfgh'][at]}2]\n`;
      const time = `2026-01-${String(at + 1).padStart(2, '0')}T00:00:00Z`;
      return `${ids}${component}    events:\n      - time: ${time}\n        ${judgement}\n`;
    }),
  );
  return `schema: bowline.advisories/v1\nartifact:\n  type: ${kind}\n  name: ${name}\nadvisories:\n${entries.join('')}`;
}

// ---- in, and out again ---------------------------------------------------------------------------------

const { organization, identity, upstream } = await owned('feeds-formats', 'walk-feeds-formats');
writeFileSync(join(work, 'token'), upstream);
succeeds('the owner signs in', bowline('auth', 'login', '--identity', identity, '--identity-token', join(work, 'token')));
const given = join(work, 'given');
mkdirSync(given);
writeFileSync(join(given, 'curl.yaml'), artifact('apk', 'curl', '2'));
writeFileSync(join(given, 'gtk.yaml'), artifact('apk', 'gtk+3.0', '3'));
writeFileSync(join(given, 'urllib3.yaml'), artifact('library', 'urllib3', '4', '    component: {type: python, name: urllib3}\n'));
writeFileSync(join(given, 'nginx.yaml'), artifact('image', 'registry.example/acme/nginx', '5'));
const group = ['--group', organization];
succeeds('judgements are imported', bowline('feeds', 'import', 'yaml', given, ...group, '--approved', '--strict'));

function exported(format, ...more) {
  const directory = join(work, `${format}-${Math.random().toString(36).slice(2)}`);
  const namespace = ['--publisher', 'Example', '--namespace', 'https://example.com/feeds', '--distribution', 'wolfi'];
  succeeds(`${format} is exported`, bowline('feeds', 'export', format, ...group, '-o', directory, ...namespace, ...more));
  return directory;
}

// ---- CSAF ----------------------------------------------------------------------------------------------

const { default: validate } = await imported('@secvisogram/csaf-validator-lib/validate.js');
const schemas = await imported('@secvisogram/csaf-validator-lib/schemaTests.js');
const mandatory = await imported('@secvisogram/csaf-validator-lib/mandatoryTests.js');
const csaf = exported('csaf');
const documents = files(csaf).filter((name) => /^\d{4}\/.*\.json$/.test(name));
check('there is a CSAF document for each artifact', documents.length === 4, documents.join(' '));
for (const name of documents) {
  const document = json(csaf, name);
  const { csaf_2_0: strict } = schemas;
  const tests = [strict, ...Object.values(mandatory)].filter((test) => typeof test === 'function');
  const { isValid, tests: done } = await validate(tests, document);
  const wrong = done.filter((test) => !test.isValid).map((test) => `${test.name}: ${JSON.stringify(test.errors)}`);
  check(`CSAF: ${name} passes the schema and ${done.length - 1} tests`, isValid && strict && done.length > 30, wrong.join('\n'));
  const plain = name.split('/')[1];
  check(`CSAF: ${name} is named after its id`, plain === `${document.document.tracking.id.toLowerCase().replace(/[^+\-a-z0-9]+/g, '_')}.json`);
  for (const algorithm of ['sha256', 'sha512']) {
    const sum = createHash(algorithm).update(read(csaf, name)).digest('hex');
    check(`CSAF: ${name} has its ${algorithm}`, read(csaf, `${name}.${algorithm}`).toString() === `${sum}  ${plain}\n`);
  }
}
check('CSAF: index.txt lists them', read(csaf, 'index.txt').toString() === documents.map((name) => `${name}\n`).join(''));
const changes = read(csaf, 'changes.csv').toString().trim().split('\n').map((line) => line.split(',').map(JSON.parse));
check('CSAF: changes.csv has the newest first', changes.every(([, at], i) => i === 0 || at <= changes[i - 1][1]), String(changes));
check('CSAF: the provider is told', json(csaf, 'provider-metadata.json').metadata_version === '2.0');

// ---- CycloneDX -------------------------------------------------------------------------------------------

const { default: Ajv } = require('ajv');
const ajv = new Ajv({ strict: false, allErrors: true });
require('ajv-formats').default(ajv);
require('ajv-formats-draft2019')(ajv);
const shipped = join(modules, '@cyclonedx/cyclonedx-library/res/schema');
for (const name of ['spdx', 'jsf-0.82', 'cryptography-defs'].map((name) => `${name}.SNAPSHOT.schema.json`)) {
  ajv.addSchema(json(shipped, name), `http://cyclonedx.org/schema/${name}`);
}
const isBom = ajv.compile(json(shipped, 'bom-1.6.SNAPSHOT.schema.json'));
const cyclonedx = exported('cyclonedx');
const boms = files(cyclonedx);
check('there is a CycloneDX document for each artifact', boms.length === 4, boms.join(' '));
for (const name of boms) {
  const document = json(cyclonedx, name);
  check(`CycloneDX: ${name} fits the schema`, isBom(document), JSON.stringify(isBom.errors));
  const known = new Set(document.components.flatMap((one) => [one, ...(one.components ?? [])]).map((one) => one['bom-ref']));
  const refs = document.vulnerabilities.flatMap((one) => one.affects.map((affected) => affected.ref));
  check(`CycloneDX: ${name} refers to what it has`, refs.length >= judgements.length && refs.every((ref) => known.has(ref)));
}

// ---- OpenVEX -----------------------------------------------------------------------------------------------

const openvex = exported('openvex');
const statements = files(openvex).filter((name) => name.endsWith('.openvex.json'));
check('there is an OpenVEX document for each artifact', statements.length === 4, statements.join(' '));
for (const name of statements) succeeds(`OpenVEX: ${name} is valid`, run(OPENVEX, join(openvex, name)));
const curl = join(openvex, 'apk/curl.openvex.json');
for (const [purl, vulnerability, status] of [
  ['pkg:apk/wolfi/curl@1.2.3-r4', 'CVE-2026-1007', 'fixed'],
  ['pkg:apk/wolfi/curl@9', 'CVE-2026-1002', 'not_affected'],
  ['pkg:apk/wolfi/curl@9', 'GHSA-2222-2222-2232', 'affected'],
  ['pkg:apk/wolfi/curl@9', 'CVE-2026-1000', 'under_investigation'],
]) {
  const stated = succeeds(`OpenVEX: ${vulnerability} is asked of ${purl}`, run(OPENVEX, curl, purl, vulnerability)).split('\n');
  check(`OpenVEX: it is ${status}`, stated.includes(status), String(stated));
}
const listed = json(openvex, 'all.json').entries.map((entry) => entry.id);
check('OpenVEX: all.json lists them', String(listed) === String(statements), String(listed));
succeeds('OpenVEX: the archive of the repository is whole', run('unzip', '-tq', join(openvex, 'vex-repository.zip')));
const manifest = json(openvex, '.well-known/vex-repository.json');
check('OpenVEX: the manifest names the archive', manifest.versions[0].locations[0].url === 'https://example.com/feeds/vex-repository.zip');

// ---- OSV -----------------------------------------------------------------------------------------------------

const osv = exported('osv', '--ecosystem', 'Wolfi');
check('OSV: the ecosystems are listed', read(osv, 'ecosystems.txt').toString() === 'PyPI\nWolfi\n');
for (const ecosystem of ['PyPI', 'Wolfi']) {
  const archive = join(osv, ecosystem, 'all.zip');
  succeeds(`OSV: ${ecosystem}/all.zip is whole`, run('unzip', '-tq', archive));
  const inside = run('unzip', '-Z1', archive).stdout.split('\n').sort();
  const beside = readdirSync(join(osv, ecosystem)).filter((name) => name.endsWith('.json')).sort();
  check(`OSV: ${ecosystem}/all.zip has every record`, String(inside) === String(beside) && inside.length >= 4, inside.join(' '));
}

// ---- what was written is read in again, and is the same ------------------------------------------------------

const { organization: second, identity: other, upstream: again } = await owned('feeds-formats-copy', 'walk-feeds-formats-copy');
writeFileSync(join(work, 'token'), again);
succeeds('another owner signs in', bowline('auth', 'login', '--identity', other, '--identity-token', join(work, 'token')));
for (const [format, directory] of [['openvex', openvex], ['csaf', csaf], ['cyclonedx', cyclonedx]]) {
  const said = succeeds(`${format} is imported`, bowline('feeds', 'import', format, directory, '--group', second, '--dry-run', '--strict'));
  check(`${format}: every advisory would come`, said.split('\n').length > 60, said);
}

rmSync(work, { recursive: true, force: true });
console.log(`${checks()} checks`);
