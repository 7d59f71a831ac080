// Installers with an empty cache, from servers that have everything, beside nginx with the same files.
import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { versions, writeNpm, writePython } from './content.mjs';
import { byTurns } from './measure.mjs';
import { atMost } from './table.mjs';

const run = promisify(execFile);
const PYTHON_PACKAGES = 100;
const NPM_PACKAGES = 500;
/** Versions on each page, of which the newest is installed. */
const VERSIONS = 10;

export async function installs(servers, table, { rounds }) {
  const up = await servers.upstream();
  writePython(servers.content, pythonTree());
  const locked = writeNpm(servers.content, up.npm, npmPackages());
  const [nginx, bowline, devpi, verdaccio] = [await servers.nginx(), await servers.bowline(), await servers.devpi(), await servers.verdaccio()];
  const clients = [
    { line: `uv pip install of ${PYTHON_PACKAGES} packages`, install: (server) => uv(servers, server), of: [nginx, bowline, devpi] },
    { line: `npm ci of ${NPM_PACKAGES} packages`, install: (server) => npm(servers, server, locked), of: [nginx, bowline, verdaccio] },
  ];
  for (const { line, install, of } of clients) {
    // The first time, servers fetch what they do not have.
    for (const server of of) await install(server);
    const seconds = await byTurns(rounds, Object.fromEntries(of.map((server) => [server.name, () => install(server)])));
    for (const { name } of of) table.row(`${line}, ${name}`, 'seconds', seconds[name]);
    table.row('  Bowline, of nginx\'s time', 'times', seconds.Bowline / seconds.nginx, atMost(1.3));
  }
}

/** A package that requires ten, each of which requires nine or so. */
function pythonTree() {
  const name = (n) => `bench-tree-${String(n).padStart(3, '0')}`;
  const requires = (n) => Array.from({ length: 10 }, (_, at) => n * 10 + at + 1).filter((child) => child < PYTHON_PACKAGES).map(name);
  const packages = Array.from({ length: PYTHON_PACKAGES }, (_, n) => versions(VERSIONS).map((version) => ({ name: name(n), version, requires: requires(n), bytes: 100_000 })));
  return packages.flat();
}

const npmPackages = () => Array.from({ length: NPM_PACKAGES }, (_, n) => ({ name: `bench-part-${n}`, bytes: 20_000 }));

/** Seconds of an installation into a new directory. */
async function timed(directory, command, args, options) {
  const begun = performance.now();
  await run(command, args, { cwd: directory, maxBuffer: 1 << 26, ...options });
  const took = (performance.now() - begun) / 1000;
  rmSync(directory, { recursive: true });
  return took;
}

function emptied(servers) {
  const directory = join(servers.directory, 'install');
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory);
  return directory;
}

function uv(servers, server) {
  const directory = emptied(servers);
  const index = new URL(`${server.python}simple/`);
  const account = server.credential ? index.href.replace('//', `//${server.credential}@`) : index.href;
  const args = ['pip', 'install', '--python', servers.programs.python, '--target', 'site', '--cache-dir', 'cache', '--index-url', account, 'bench-tree-000'];
  return timed(directory, servers.programs.uv, args, { env: { PATH: process.env.PATH, HOME: directory, UV_NO_CONFIG: '1' } });
}

function npm(servers, server, locked) {
  const directory = emptied(servers);
  const dependencies = Object.fromEntries(locked.map(({ name, version }) => [name, version]));
  const entries = locked.map(({ name, version, integrity }) => [`node_modules/${name}`, { version, resolved: `${server.npm}${name}/-/${name}-${version}.tgz`, integrity, license: 'MIT' }]);
  const project = { name: 'app', version: '1.0.0' };
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ ...project, dependencies }));
  writeFileSync(join(directory, 'package-lock.json'), JSON.stringify({ ...project, lockfileVersion: 3, requires: true, packages: { '': { ...project, dependencies }, ...Object.fromEntries(entries) } }));
  const account = server.npmAccount ? `//${server.npm.split('//')[1]}:${server.npmAccount}\n` : '';
  writeFileSync(join(directory, '.npmrc'), `registry=${server.npm}\n${account}audit=false\nfund=false\nupdate-notifier=false\nignore-scripts=true\ncache=${join(directory, 'cache')}\n`);
  return timed(directory, 'npm', ['ci'], { env: { PATH: process.env.PATH, HOME: directory } });
}
