#!/usr/bin/env node
// Measures hosts of packages beside devpi-server, Verdaccio and nginx, which serve the same generated packages.
//
//   bench/packages.mjs SERVER [--only LINE]... [--rounds N] [--seconds N]
//   bench/packages.mjs target/release/bowline --only pages --only misses
//
// Lines: pages, unchanged, document, misses, installs. All upstreams are on loopback; the peers are installed into the cache
// directory the first time. Prints one table; progress goes to stderr.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { document } from './packages/document.mjs';
import { installs } from './packages/installs.mjs';
import { median, others } from './packages/measure.mjs';
import { misses } from './packages/misses.mjs';
import { pages, unchanged } from './packages/pages.mjs';
import { VERSIONS, installed } from './packages/peers.mjs';
import { Servers } from './packages/servers.mjs';
import { Table } from './packages/table.mjs';

const LINES = { pages, unchanged, document, misses, installs };

/** Arguments of the command line; a wrong one ends the run. */
function parsed() {
  try {
    const options = { only: { type: 'string', multiple: true, default: Object.keys(LINES) }, rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '4' } };
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
    const isRight = positionals.length === 1 && rounds > 0 && seconds > 0 && values.only.every((line) => line in LINES);
    if (isRight) return { bowline: realpathSync(positionals[0]), lines: values.only, rounds, seconds };
  } catch (error) {
    console.error(`error: ${error.message}`);
  }
  console.error(`usage: bench/packages.mjs SERVER [--only ${Object.keys(LINES).join('|')}]... [--rounds N] [--seconds N]`);
  process.exit(2);
}

const { bowline, lines, ...settings } = parsed();
const programs = installed();
const table = new Table();
let servers;
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    await servers?.stop();
    process.exit(1);
  });
}
for (const line of lines) {
  // Each line has servers of its own: what one leaves in memory and on disk does not meet the next.
  const directory = mkdtempSync(join(tmpdir(), 'bench-packages.'));
  servers = new Servers(directory, bowline, programs);
  mkdirSync(servers.content);
  console.error(line);
  try {
    await LINES[line](servers, table, settings);
  } finally {
    await servers.stop();
  }
  rmSync(directory, { recursive: true, force: true });
}

const version = execFileSync(bowline, ['--version'], { encoding: 'utf8' }).trim();
console.log(`${version}; devpi-server ${VERSIONS.devpi}, Verdaccio ${VERSIONS.verdaccio}, uv ${VERSIONS.uv}`);
console.log(`${availableParallelism()} cores shared by clients and servers; others used ${median(others).toFixed(0)} % of them between rounds (median; ${Math.max(...others).toFixed(0)} % at most)`);
console.log(`medians of ${settings.rounds} rounds by turns, loads of ${settings.seconds} s\n`);
console.log(`${table}\n\n${table.missed} targets missed`);
