// The upstream: serves a tree of generated packages over loopback, and counts requests by path.
//
//   node upstream.mjs ROOT PORT
//
// A process of its own, so that neither the clients nor the gauges of the run delay it. `/-/count/PATH` is the count of a path.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

const [root, port] = process.argv.slice(2);
const counts = new Map();

/** The file at a path, and its media type. */
function located(path) {
  if (/^\/python\/simple\/([\w.-]+\/)?$/.test(path)) return [`${path}index.json`, 'application/vnd.pypi.simple.v1+json'];
  if (/^\/npm\/[\w.-]+$/.test(path)) return [`${path}/document.json`, 'application/json'];
  if (/^\/(python\/files|npm\/[\w.-]+\/-)\/[\w.-]+$/.test(path)) return [path, 'application/octet-stream'];
  return undefined;
}

createServer((request, response) => {
  const path = request.url;
  if (path.startsWith('/-/count/')) return response.end(String(counts.get(path.slice('/-/count'.length)) ?? 0));
  counts.set(path, (counts.get(path) ?? 0) + 1);
  try {
    const [file, type] = located(path);
    const content = readFileSync(join(root, file));
    response.writeHead(200, { 'content-type': type, 'content-length': content.length });
    response.end(request.method === 'HEAD' ? undefined : content);
  } catch {
    response.writeHead(404).end();
  }
}).listen(Number(port), '127.0.0.1');
