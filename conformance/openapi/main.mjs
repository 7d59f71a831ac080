// The OpenAPI documents, checked by software of others: two validators; the clients of two generators, which compile
// and run a flow of each domain; and requests that schemathesis makes of them.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE                    its binary
//   OPENAPI_MODULES            where the packages of package.json are
//   OPENAPI_VENV               where those of requirements.txt are
//   OPENAPI_WHOLE=1            more requests of schemathesis than the sample, for about ten minutes
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { check, checks } from '../lib.mjs';
import { requests } from './requests.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const { BASE_URL, OPENAPI_MODULES, OPENAPI_VENV } = process.env;
const versions = ['v1', 'v2'];
const work = mkdtempSync(join(tmpdir(), 'openapi.'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
symlinkSync(join(OPENAPI_MODULES, 'node_modules'), join(work, 'node_modules'));
writeFileSync(join(work, 'package.json'), '{ "type": "module" }\n');

const run = (command, ...args) => runWith({}, command, ...args);

function runWith(more, command, ...args) {
  const env = { ...process.env, HOME: work, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', ...more };
  const options = { cwd: work, env, encoding: 'utf8', timeout: 3_600_000, maxBuffer: 1 << 28 };
  const { status, stdout, stderr, error } = spawnSync(command, args, options);
  if (error) throw error;
  return { status, output: `${stdout}${stderr}` };
}

function succeeds(what, command, ...args) {
  const { status, output } = run(command, ...args);
  check(what, status === 0, `ended with ${status}: ${output.slice(-6000)}`);
}

const npm = (name) => join(OPENAPI_MODULES, 'node_modules/.bin', name);

const documents = {};
for (const version of versions) {
  const answer = await fetch(`${BASE_URL}/openapi/${version}.json`);
  check(`the server has the document of ${version}`, answer.ok, String(answer.status));
  const text = await answer.text();
  writeFileSync(join(work, `${version}.json`), text);
  documents[version] = JSON.parse(text);
}

// ---- validators ------------------------------------------------------------------------------------------

// Two paths that differ in the name of a variable alone: both validators must report them.
const operation = (name) => ({
  operationId: name,
  summary: name,
  tags: ['x'],
  parameters: [{ name, in: 'path', required: true, schema: { type: 'string' } }],
  responses: { 200: { description: 'Done.' }, '4XX': { description: 'Rejected.' } },
});
const broken = {
  ...documents.v2,
  components: { securitySchemes: documents.v2.components.securitySchemes },
  tags: [{ name: 'x', description: 'x' }],
  paths: { '/x/{a}': { get: operation('a') }, '/x/{b}': { patch: operation('b') } },
};
writeFileSync(join(work, 'broken.json'), JSON.stringify(broken));

const validators = [
  ['Redocly', 'no-identical-paths', (file) => run(npm('redocly'), 'lint', file, '--config', join(here, 'redocly.yaml'))],
  [
    'Spectral',
    'path-params',
    (file) => run(npm('spectral'), 'lint', file, '--ruleset', join(here, 'spectral.yaml'), '--fail-severity', 'warn'),
  ],
];
for (const [name, rule, validate] of validators) {
  const { status, output } = validate('broken.json');
  check(`${name} rejects paths that differ only in the name of a variable`, status !== 0 && output.includes(rule), output);
  for (const version of versions) {
    const { status, output } = validate(`${version}.json`);
    check(`${name} accepts the document of ${version}`, status === 0, output.slice(-6000));
  }
}

/** Every pattern of a document. */
function patterns(value) {
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, member]) =>
    name === 'pattern' && typeof member === 'string' ? [member] : patterns(member),
  );
}
for (const version of versions) {
  const all = [...new Set(patterns(documents[version]))];
  for (const pattern of all) for (const flags of ['', 'u']) new RegExp(pattern, flags);
  check(`the ${all.length} patterns of ${version} are those of ECMA-262`, all.length > 5);
}

// ---- clients ---------------------------------------------------------------------------------------------

const compiler = ['--strict', '--target', 'es2022', '--module', 'nodenext', '--skipLibCheck', '--lib', 'es2022,dom,dom.iterable'];
writeFileSync(join(work, 'node.d.ts'), 'declare const process: { env: Record<string, string> };\n');

for (const version of versions) {
  succeeds(`openapi-typescript reads the document of ${version}`, npm('openapi-typescript'), `${version}.json`, '-o', `${version}.ts`);
  mkdirSync(join(work, 'generated', version), { recursive: true });
  succeeds(
    `openapi-generator reads the document of ${version}`,
    join(OPENAPI_VENV, 'bin/python'), join(here, 'generator.py'),
    'generate', '-i', `${version}.json`, '-g', 'typescript-fetch', '-o', `generated/${version}`,
    '--additional-properties', 'importFileExtension=.js',
  );
}
for (const [client, generator] of [['typed', 'openapi-typescript'], ['generated', 'openapi-generator']]) {
  copyFileSync(join(here, `${client}.ts`), join(work, `${client}.ts`));
  succeeds(`the client of ${generator} compiles`, npm('tsc'), ...compiler, `${client}.ts`, 'node.d.ts');
  succeeds(`the client of ${generator} runs a flow of each domain`, 'node', `${client}.js`);
}

// ---- requests --------------------------------------------------------------------------------------------

await requests(work, runWith, documents);

console.log(`${checks()} passed, 0 failed`);
