// Records of vulnerabilities: real ones are imported by the command line, and programs that others wrote find them, and
// planted ones, at the query API.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE                    its binary
//   FEEDS                      directory with the virtual environment `venv`
//   FEEDS_RECORDS              directory with records of Go's database
//   FEEDS_SCHEMA               the published JSON schema of records
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { call, check, checks } from '../lib.mjs';

const { BASE_URL, OPERATOR_TOKEN, BOWLINE, FEEDS, FEEDS_RECORDS, FEEDS_SCHEMA } = process.env;
const work = mkdtempSync(join(tmpdir(), 'feeds.'));
const token = join(work, 'token');
writeFileSync(token, OPERATOR_TOKEN, { mode: 0o600 });

function run(command, args, options = {}) {
  const env = { HOME: work, PATH: process.env.PATH, UV_OFFLINE: '1', UV_CACHE_DIR: join(work, 'uv') };
  const { status, stdout, stderr, error } = spawnSync(command, args, { env, cwd: work, encoding: 'utf8', timeout: 120_000, maxBuffer: 64 << 20, ...options });
  if (error) throw error;
  return { status, stdout, stderr };
}
const tool = (name, ...args) => run(join(FEEDS, 'venv/bin', name), args);

/** Imports a path and gives the counts that the command tells. It ends with 1 where something was left out. */
function bring(path, source, ...more) {
  const args = ['feeds', 'import', 'osv', path, '--source', source, '--licence', 'CC-BY-4.0', '--api', BASE_URL, '--token-file', token, '-o', 'json', ...more];
  const { status, stdout, stderr } = run(BOWLINE, args);
  const told = stdout ? JSON.parse(stdout)[0] : {};
  check(`${source}: ${more.join(' ') || 'an import'} succeeds`, status === (Number(told.left_out) > 0 ? 1 : 0) && told.source !== '', stderr);
  return told;
}

/** A program that ran held everything up: lets connections end that the server has given up meanwhile. */
const breathe = () => new Promise((done) => setTimeout(done, 50));

async function osv(path, body) {
  await breathe();
  const answer = await fetch(`${BASE_URL}/osv/v1/${path}`, body && { method: 'POST', body: JSON.stringify(body) });
  return { status: answer.status, body: await answer.json() };
}

// ---- real records ------------------------------------------------------------------------------------

/** Ids of the records below a directory, each once. */
function idsBelow(directory) {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((file) => file.isFile() && file.name.startsWith('GO-') && file.name.endsWith('.json'));
  return [...new Set(files.map((file) => file.name.slice(0, -5)))].sort();
}

const real = idsBelow(FEEDS_RECORDS);
const report = join(work, 'report.jsonl');
const first = bring(FEEDS_RECORDS, 'go', '--full', '--report', report);
check('every record of the database is brought', Number(first.added) === real.length, JSON.stringify(first));
const leftOut = readFileSync(report, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
check('what was left out is reported with its reason', leftOut.length === Number(first.left_out) && leftOut.every((one) => one.file && one.reason), JSON.stringify(leftOut));
const again = bring(FEEDS_RECORDS, 'go', '--full');
check('the same again changes nothing', [again.added, again.changed, again.removed].every((count) => count === '0'), JSON.stringify(again));

const served = [];
for (const id of real) served.push((await osv(`vulns/${id}`)).body);
check('every record is served', served.every((record, i) => record.id === real[i]));
const judged = run(join(FEEDS, 'venv/bin/python'), [join(import.meta.dirname, 'judge.py'), FEEDS_SCHEMA], { input: served.map((record) => JSON.stringify(record)).join('\n') });
check('and is what the published schema says', judged.status === 0, judged.stdout + judged.stderr);
const text = await osv('query', { version: '0.3.6', package: { ecosystem: 'Go', name: 'golang.org/x/text' } });
check('a version that is affected is found', text.body.vulns?.some((record) => record.id === 'GO-2021-0113'), JSON.stringify(text));
const fixed = await osv('query', { version: 'v0.3.7', package: { ecosystem: 'Go', name: 'golang.org/x/text' } });
check('and one that is fixed is not', !fixed.body.vulns?.some((record) => record.id === 'GO-2021-0113'), JSON.stringify(fixed));
const shown = JSON.parse(run(BOWLINE, ['vulns', 'get', 'CVE-2021-38561', '--api', BASE_URL, '-o', 'json']).stdout);
check('anybody reads of it by its alias', shown[0]?.id === 'CVE-2021-38561' && shown[0].details.includes('language tag'), JSON.stringify(shown));

// ---- planted records, and programs that find them ------------------------------------------------------

const planted = {
  schema_version: '1.7.0', id: 'BOWLINE-2026-1', modified: '2026-01-01T00:00:00Z', published: '2026-01-01T00:00:00Z',
  aliases: ['CVE-2026-99991'], summary: 'planted', details: 'A planted vulnerability.',
  affected: [{ package: { ecosystem: 'PyPI', name: 'planted-package', purl: 'pkg:pypi/planted-package' }, ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '1.10' }] }] }],
  references: [{ type: 'WEB', url: 'https://example.com/planted' }],
};
const directory = join(work, 'planted');
mkdirSync(directory);
writeFileSync(join(directory, 'BOWLINE-2026-1.json'), JSON.stringify(planted));
const dry = bring(directory, 'planted', '--dry-run');
check('a dry run tells what would change', dry.added === '1', JSON.stringify(dry));
check('and changes nothing', (await osv('vulns/BOWLINE-2026-1')).status === 404);
bring(directory, 'planted');

/** What pip-audit says of the package at a version: ids, or none. */
function pipAudit(version) {
  writeFileSync(join(work, 'requirements.txt'), `planted-package==${version}\n`);
  const { status, stdout, stderr } = tool('pip-audit', '-r', 'requirements.txt', '--no-deps', '--disable-pip', '-s', 'osv', '--osv-url', `${BASE_URL}/osv/v1/query`, '-f', 'json', '--progress-spinner', 'off', '--cache-dir', join(work, 'cache'));
  const dependencies = stdout ? JSON.parse(stdout).dependencies : [];
  return { status, stderr, vulns: dependencies.flatMap((dependency) => dependency.vulns) };
}
const bad = pipAudit('1.9');
// It names a vulnerability by the best known of its ids.
check('pip-audit finds the planted vulnerability', bad.status === 1 && bad.vulns.length === 1 && [bad.vulns[0].id, ...bad.vulns[0].aliases].includes('BOWLINE-2026-1'), JSON.stringify(bad));
check('and the version that fixes it', bad.vulns[0].fix_versions.includes('1.10'), JSON.stringify(bad));
const good = pipAudit('1.10');
check('and nothing where it is fixed', good.status === 0 && good.vulns.length === 0, JSON.stringify(good));

/** What uv says of a project that depends on the package at a version. */
function uvAudit(version) {
  const project = join(work, `uv-${version}`);
  mkdirSync(project);
  writeFileSync(join(project, 'pyproject.toml'), `[project]\nname = "demo"\nversion = "0.1.0"\nrequires-python = ">=3.9"\ndependencies = ["planted-package==${version}"]\n`);
  const wheel = `{ url = "https://example.com/planted_package-${version}-py3-none-any.whl", hash = "sha256:${'0'.repeat(64)}" }`;
  writeFileSync(join(project, 'uv.lock'), `version = 1\nrevision = 3\nrequires-python = ">=3.9"\n
[[package]]\nname = "demo"\nversion = "0.1.0"\nsource = { virtual = "." }\ndependencies = [{ name = "planted-package" }]\n
[package.metadata]\nrequires-dist = [{ name = "planted-package", specifier = "==${version}" }]\n
[[package]]\nname = "planted-package"\nversion = "${version}"\nsource = { registry = "https://example.com/simple" }\nwheels = [${wheel}]\n`);
  const env = { HOME: work, PATH: process.env.PATH, UV_CACHE_DIR: join(work, 'uv'), UV_PYTHON: join(FEEDS, 'venv/bin/python') };
  return run(join(FEEDS, 'venv/bin/uv'), ['audit', '--frozen', '--service-url', `${BASE_URL}/osv/`, '--preview-features', 'audit'], { cwd: project, env });
}
const found = uvAudit('1.9');
check('uv audit finds the planted vulnerability', found.status !== 0 && `${found.stdout}${found.stderr}`.includes('https://example.com/planted'), `${found.status}\n${found.stdout}\n${found.stderr}`);
const clean = uvAudit('1.10');
check('and nothing where it is fixed', clean.status === 0 && !`${clean.stdout}${clean.stderr}`.includes('https://example.com/planted'), `${clean.status}\n${clean.stdout}\n${clean.stderr}`);

// ---- an archive that another program wrote, with more entries than the small directory counts ----------

const many = 70_000;
const zip = run(join(FEEDS, 'venv/bin/python'), ['-c', `
import json, zipfile
with zipfile.ZipFile("many.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for i in range(${many}):
        archive.writestr(f"M-{i}.json", json.dumps({"id": "M-0", "modified": "2026-01-01T00:00:00Z"}))
`]);
check('an archive is written', zip.status === 0, zip.stderr);
const archive = bring(join(work, 'many.zip'), 'many');
check('all of its entries are read', Number(archive.read) === many && archive.added === '1', JSON.stringify(archive));

await breathe();
// Other suites bring sources of their own to the same server.
const own = ['go', 'many', 'planted'];
const sources = (await call('GET', '/feeds/bowline/v1/sources')).sources.filter((source) => own.includes(source.name)).map((source) => [source.name, source.licence]);
check('sources are listed with their licences', JSON.stringify(sources) === JSON.stringify([['go', 'CC-BY-4.0'], ['many', 'CC-BY-4.0'], ['planted', 'CC-BY-4.0']]), JSON.stringify(sources));

rmSync(work, { recursive: true });
console.log(`${checks()} passed`);
