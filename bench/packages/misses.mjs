// Files that the server does not have yet: how long after the upstream's first byte a client has its own, and how often the
// upstream is asked when many clients want one file.
import { versions, writeNpm, writePython } from './content.mjs';
import { median, quiet, readByMany, whole } from './measure.mjs';
import { atMost } from './table.mjs';

/** Files of a size, fetched one after the other. */
const FILES = 40;
const SIZES = { 'a file of 1 MiB': 1 << 20, 'a file of 16 KiB': 1 << 14 };
const CLIENTS = 100;

export async function misses(servers, table) {
  const up = await servers.upstream();
  // The last version is for the many clients.
  const packages = Object.values(SIZES).map((bytes, at) => ({ name: `cold-${at}`, versions: versions(FILES + 1), bytes }));
  writePython(servers.content, packages.flatMap((one) => one.versions.map((version) => ({ ...one, version }))));
  writeNpm(servers.content, up.npm, packages);
  const [bowline, devpi, verdaccio] = [await servers.bowline(), await servers.devpi(), await servers.verdaccio()];
  for (const [kind, peer, listed] of [['Python', devpi, wheels], ['npm', verdaccio, tarballs]]) {
    for (const [at, what] of Object.keys(SIZES).entries()) {
      const direct = await listed(up, `cold-${at}`);
      for (const server of [bowline, peer]) {
        await quiet();
        const files = await listed(server, `cold-${at}`);
        const target = (bound) => (server === bowline ? atMost(bound) : undefined);
        table.row(`${kind}, ${what}, ${server.name}: first byte after the upstream's`, 'milliseconds', await delay(files, direct), target(2));
        const { asked, failed } = await byMany(servers, files.at(-1), direct.at(-1));
        table.row(`  requests to the upstream of ${CLIENTS} clients at once${failed ? `, ${failed} of whom get no file` : ''}`, 'count', asked, target(1));
      }
    }
  }
}

/** Files of a package, as its page at a server lists them; the server has the page then. */
async function wheels(server, name) {
  const page = `${server.python}simple/${name}/`;
  const { body } = await whole({ url: page, headers: { ...server.headers, accept: 'application/vnd.pypi.simple.v1+json' } });
  return JSON.parse(body).files.toSorted(byVersion).map(({ url }) => ({ url: new URL(url, page).href.split('#')[0], headers: server.headers }));
}

async function tarballs(server, name) {
  const { body } = await whole({ url: `${server.npm}${name}`, headers: server.headers });
  return Object.values(JSON.parse(body).versions).map(({ dist }) => ({ filename: dist.tarball, url: dist.tarball, headers: server.headers })).toSorted(byVersion);
}

const minor = ({ filename }) => Number(filename.match(/-1\.(\d+)\.0/)[1]);
const byVersion = (one, other) => minor(one) - minor(other);

/** Median of the differences between the first byte from a server and that from the upstream, file by file. */
async function delay(files, direct) {
  const differences = [];
  for (const [at, file] of files.slice(0, FILES).entries()) {
    const { first } = await whole(direct[at]);
    differences.push((await whole(file)).first - first);
  }
  return median(differences);
}

/** How often many clients that want one file have the upstream asked for it, and how many of them do not get it. */
async function byMany(servers, file, direct) {
  const path = new URL(direct.url).pathname;
  const { body } = await whole(direct);
  const before = await servers.count(path);
  const replies = await readByMany(CLIENTS, file);
  return { asked: (await servers.count(path)) - before, failed: replies.filter((reply) => reply?.status !== 200 || !reply.body.equals(body)).length };
}
