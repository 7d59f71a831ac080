// The good client of the soak: 40 calls a second that leave when they are due; half of them write.
//
//   BASE TOKEN ORGANIZATION node good.mjs SECONDS FIRST
//
// One line of JSON for each response: ms from the moment the call was due, and what an acknowledged write wrote.
import http from 'node:http';

const { BASE, TOKEN, ORGANIZATION } = process.env;
const [seconds, first] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
const PER_SECOND = 40;
const NAMES = 200;

function send(method, path, body) {
  return new Promise((done, fail) => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    if (body) headers['content-type'] = 'application/json';
    const request = http.request(BASE + path, { agent, method, headers, timeout: 60_000 }, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.on('end', () => done({ status: response.statusCode, text: Buffer.concat(parts).toString() }));
      response.on('error', fail);
    });
    request.on('timeout', () => request.destroy(new Error('no response within 60 s')));
    request.on('error', fail);
    request.end(body && JSON.stringify(body));
  });
}

const uids = new Map();
const busy = new Set();
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** Makes a repository, or writes its description anew: a number that grows. */
async function write(number) {
  const name = `r${first}-${number % NAMES}`;
  if (busy.has(name)) return undefined;
  busy.add(name);
  try {
    const uid = uids.get(name);
    const body = { description: String(number) };
    const answer = uid
      ? await send('PATCH', `/registry/v2/repos/${uid}`, body)
      : await send('POST', `/registry/v2/repos/${ORGANIZATION}`, { name, ...body });
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
    uids.set(name, JSON.parse(answer.text).uid);
    return { name, at: number };
  } finally {
    busy.delete(name);
  }
}

async function read(number) {
  const known = [...uids.values()];
  const uid = known[number % Math.max(1, known.length)];
  const answer = await send('GET', uid ? `/registry/v2/repos/${uid}` : `/registry/v2/repos?uidp.childrenOf=${ORGANIZATION}`);
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
}

const began = performance.now();
const open = new Set();
for (let number = 0; number < seconds * PER_SECOND; number += 1) {
  const due = began + (number * 1000) / PER_SECOND;
  const early = due - performance.now();
  if (early > 0) await new Promise((ready) => setTimeout(ready, early));
  const call = (number % 2 ? read(number) : write(number)).then(
    (wrote) => say({ ms: performance.now() - due, wrote }),
    (error) => say({ failed: error.message }),
  ).finally(() => open.delete(call));
  open.add(call);
}
await Promise.all(open);
agent.destroy();
