// The other servers and the installer, each of a fixed version, installed once into a directory of the cache.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export const VERSIONS = { devpi: '6.20.3', uv: '0.13.9', verdaccio: '6.10.4', node: '22.23.5' };
const PACKAGE = {
  private: true,
  // Verdaccio requires a Node of its own choice, which may be newer than the machine's.
  dependencies: { verdaccio: VERSIONS.verdaccio, node: `npm:node-linux-${process.arch}@${VERSIONS.node}` },
  // Its plugin for audits names a tag of node-fetch, which not every registry has.
  overrides: { 'node-fetch': '2.7.0' },
};

/** Paths of programs. */
export function installed() {
  for (const [program, from] of [['wrk', 'wrk'], ['nginx', 'nginx-light']]) requireProgram(program, from);
  const cache = process.env.BOWLINE_CACHE ?? join(homedir(), '.cache/bowline');
  const name = createHash('sha256').update(JSON.stringify([VERSIONS, PACKAGE])).digest('hex').slice(0, 16);
  const directory = join(cache, 'bench-packages', name);
  if (!existsSync(join(directory, '.done'))) install(directory);
  const python = (program) => join(directory, 'venv/bin', program);
  return { python: python('python'), uv: python('uv'), devpiInit: python('devpi-init'), devpi: python('devpi-server'), verdaccio: ['node/bin/node', 'verdaccio/bin/verdaccio'].map((path) => join(directory, 'node_modules', path)) };
}

function requireProgram(program, debian) {
  const has = process.env.PATH.split(':').concat('/usr/sbin').some((directory) => existsSync(join(directory, program)));
  if (!has) throw new Error(`${program} is not on the PATH\nhint: apt-get install --no-install-recommends ${debian}`);
}

function install(directory) {
  console.error(`installing devpi-server, uv and Verdaccio into ${directory}`);
  mkdirSync(directory, { recursive: true });
  const run = (command, ...args) => execFileSync(command, args, { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] });
  run('python3', '-m', 'venv', 'venv');
  run('venv/bin/pip', 'install', '-q', '--disable-pip-version-check', `devpi-server==${VERSIONS.devpi}`, `uv==${VERSIONS.uv}`);
  writeFileSync(join(directory, 'package.json'), JSON.stringify(PACKAGE));
  run('npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error');
  writeFileSync(join(directory, '.done'), '');
}
