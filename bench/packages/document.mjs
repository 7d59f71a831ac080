// A whole document of npm with 5,000 versions, 20 MB: what a server needs of memory for it, and how soon it begins.
import { versions, writeNpm } from './content.mjs';
import { load, median, peak, quiet, readByMany, resident, whole } from './measure.mjs';
import { atMost } from './table.mjs';

const VERSIONS = 5000;
/** Dependencies that make a version some 4 KB long. */
const DEPENDENCIES = Object.fromEntries(Array.from({ length: 110 }, (_, n) => [`a-dependency-with-a-name-${n}`, '^1.0.0']));
const CLIENTS = 8;
/** Seconds of small requests after each large one: allocators return what they do not use while they are used. */
const SETTLING = 1;

export async function document(servers, table, { rounds }) {
  const up = await servers.upstream();
  writeNpm(servers.content, up.npm, [{ name: 'long', versions: versions(VERSIONS), dependencies: DEPENDENCIES }, { name: 'short' }]);
  for (const server of [await servers.bowline(), await servers.verdaccio()]) {
    report(table, server, await measured(server, rounds));
  }
}

async function measured(server, rounds) {
  const ask = { url: `${server.npm}long`, headers: server.headers };
  const short = { url: `${server.npm}short`, headers: server.headers };
  await load(server, short, SETTLING);
  const fresh = resident(server.pid);
  const { body } = await whole(ask);
  const count = Object.keys(JSON.parse(body).versions).length;
  if (count !== VERSIONS) throw new Error(`${server.name} lists ${count} of ${VERSIONS} versions`);
  const [idle, alone, many, firsts] = [[], [], [], []];
  const settled = async () => {
    await load(server, short, SETTLING);
    idle.push(resident(server.pid));
  };
  for (let round = 0; round < rounds; round += 1) {
    await quiet();
    await settled();
    alone.push(await peak(server.pid, async () => firsts.push((await whole(ask)).first)));
    await settled();
    many.push(await peak(server.pid, () => readWhole(ask)));
  }
  // Some of it stays all the same: the least that the server has between requests is where each begins.
  const least = Math.min(...idle);
  return { bytes: body.length, alone: median(alone) - least, many: (median(many) - least) / CLIENTS, first: median(firsts), kept: least - fresh };
}

/** Has many clients read a document at once, all of whom must get it. */
async function readWhole(ask) {
  const replies = await readByMany(CLIENTS, ask);
  if (!replies.every((reply) => reply?.status === 200)) throw new Error(`${ask.url}: not every client has it`);
}

function report(table, server, { bytes, alone, many, first, kept }) {
  const target = (bound) => (server.name === 'Bowline' ? atMost(bound) : undefined);
  table.row(`document of ${VERSIONS} versions, ${(bytes / 1e6).toFixed(1)} MB, ${server.name}: memory of one request`, 'megabytes', alone, target(2));
  table.row(`  of each of ${CLIENTS} at once`, 'megabytes', many, target(2));
  table.row('  first byte', 'milliseconds', first, target(10));
  table.row('  memory between requests, above that before the first', 'megabytes', kept);
}
