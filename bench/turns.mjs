#!/usr/bin/env node
// Measures two builds of the server by turns, so that what the machine does meanwhile meets both.
//
//   bench/turns.mjs BASELINE SERVER ROUNDS LINE...
//   bench/turns.mjs ../before/target/release target/release 5 get list create
//
// Both are directories with a bowline and its bowline-bench: prepared databases have the schema of their own build.
// Prints each figure's median of both and the quartiles of the baseline: a change that stays between them is noise.
import { execFileSync } from 'node:child_process';
import path from 'node:path';

const [baseline, server, rounds, ...lines] = process.argv.slice(2);
if (!lines.length || !(Number(rounds) > 0)) {
  console.error('usage: bench/turns.mjs BASELINE SERVER ROUNDS LINE...');
  process.exit(2);
}

/** Figures of one run, by the row's text and how often it came before. */
function measure(build) {
  const env = { ...process.env, BOWLINE_BENCH_SERVER: path.join(build, 'bowline') };
  const output = execFileSync(path.join(build, 'bowline-bench'), lines, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  const seen = new Map();
  const figures = new Map();
  for (const line of output.split('\n')) {
    const row = line.match(/^(.{66}) .{12} +([\d.]+)(\/s| ms| us| B| MB| s| %|x) /);
    if (!row) continue;
    const text = row[1].trim();
    const before = seen.get(text) ?? 0;
    seen.set(text, before + 1);
    figures.set(before ? `${text} (${before + 1})` : text, { value: Number(row[2]), unit: row[3] });
  }
  return figures;
}

const found = [new Map(), new Map()];
for (let round = 1; round <= Number(rounds); round += 1) {
  for (const [of, build] of [baseline, server].entries()) {
    for (const [row, figure] of measure(build)) found[of].set(row, [...(found[of].get(row) ?? []), figure]);
    console.error(`round ${round}: ${of ? 'the server' : 'the baseline'} is measured`);
  }
}

const quantile = (figures, share) => {
  const sorted = figures.map(({ value }) => value).sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (high - low) * (at - Math.floor(at));
};
console.log(`${'line'.padEnd(66)} ${'baseline'.padStart(12)} ${'quartiles'.padStart(19)} ${'server'.padStart(12)}  ratio`);
for (const [row, before] of found[0]) {
  const after = found[1].get(row);
  if (!after) continue;
  const [low, middle, high, now] = [quantile(before, 0.25), quantile(before, 0.5), quantile(before, 0.75), quantile(after, 0.5)];
  const within = now >= low && now <= high ? 'within' : '';
  const shown = (value) => `${Number(value.toPrecision(5))}`;
  console.log(`${row.padEnd(66)} ${shown(middle).padStart(12)} ${`${shown(low)}..${shown(high)}`.padStart(19)} ${shown(now).padStart(12)}  ${(now / middle).toFixed(2)}x ${within}`);
}
