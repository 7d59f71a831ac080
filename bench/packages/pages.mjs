// Hits: a page of some 100 KB that the server has, and the response 304 to those who have it.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { versions, writeNpm, writePython } from './content.mjs';
import { byTurns, load, whole } from './measure.mjs';
import { atLeast } from './table.mjs';

const VERSIONS = 280;
/** The form of pages that pip and uv ask for. */
const PYTHON_PAGE = { accept: 'application/vnd.pypi.simple.v1+json' };

/** What is read in each ecosystem; the peer's name, and how many times its rate Bowline's is to be. */
const KINDS = [
  { what: 'Python page', peer: 'devpi', times: 30, ask: (server) => ({ url: `${server.python}simple/wide/`, headers: { ...server.headers, ...PYTHON_PAGE } }) },
  { what: 'npm document', peer: 'verdaccio', times: 15, ask: (server) => ({ url: `${server.npm}wide`, headers: server.headers }) },
];

/** Starts the upstream of a package with many versions, in both ecosystems, and Bowline. */
async function start(servers) {
  const up = await servers.upstream();
  // Other servers' pages do not list metadata: with them the pages would differ even more.
  writePython(servers.content, versions(VERSIONS).map((version) => ({ name: 'wide', version, bytes: 16, hasMetadata: false })));
  writeNpm(servers.content, up.npm, [{ name: 'wide', versions: versions(VERSIONS) }]);
  return servers.bowline();
}

/** The page, which the server fetches from the upstream; it must be whole. */
async function fetched(server, ask) {
  const page = await whole(ask);
  const { files, versions: listed } = JSON.parse(page.body);
  const count = files?.length ?? Object.keys(listed).length;
  if (count !== VERSIONS) throw new Error(`${server.name} lists ${count} of ${VERSIONS} versions`);
  return page;
}

/** What a request is in nginx that gets the same bytes as from Bowline. */
function echo(servers, nginx, name, body) {
  mkdirSync(join(servers.content, 'echo'), { recursive: true });
  writeFileSync(join(servers.content, 'echo', name), body);
  return { url: `${nginx.base}/echo/${name}` };
}

export async function pages(servers, table, { rounds, seconds }) {
  const bowline = await start(servers);
  const nginx = await servers.nginx();
  for (const { what, peer, times, ask } of KINDS) {
    const other = await servers[peer]();
    const bodies = { bowline: (await fetched(bowline, ask(bowline))).body, other: (await fetched(other, ask(other))).body };
    const echoed = echo(servers, nginx, peer, bodies.bowline);
    const loads = {
      nginx: (duration) => load(nginx, echoed, duration),
      bowline: (duration) => load(bowline, ask(bowline), duration),
      other: (duration) => load(other, ask(other), duration),
    };
    for (const warmUp of Object.values(loads)) await warmUp(1);
    const figures = await byTurns(rounds, Object.fromEntries(Object.entries(loads).map(([name, run]) => [name, () => run(seconds)])));
    for (const [name, server, body] of [['nginx', nginx, bodies.bowline], ['bowline', bowline, bodies.bowline], ['other', other, bodies.other]]) {
      table.row(`${what} of ${VERSIONS} versions, ${(body.length / 1000).toFixed(0)} kB, ${server.name}`, 'rate', figures[name].rate);
      table.row('  processor time of the server per 1,000 requests', 'milliseconds', figures[name].cpu);
    }
    table.row(`  Bowline, of ${other.name}'s rate`, 'times', figures.bowline.rate / figures.other.rate, atLeast(times));
    table.row("  Bowline, of nginx's rate", 'percent', (figures.bowline.rate / figures.nginx.rate) * 100, atLeast(35));
  }
}

export async function unchanged(servers, table, { rounds, seconds }) {
  const bowline = await start(servers);
  for (const { what, ask } of KINDS) {
    const page = ask(bowline);
    const { etag } = (await fetched(bowline, page)).headers;
    const known = { ...page, headers: { ...page.headers, 'if-none-match': etag } };
    await load(bowline, page, 1);
    const figures = await byTurns(rounds, { page: () => load(bowline, page, seconds), known: () => load(bowline, known, seconds) });
    table.row(`304 for the ${what}`, 'rate', figures.known.rate);
    table.row('  of the rate of the whole', 'times', figures.known.rate / figures.page.rate, atLeast(1.3));
  }
}
