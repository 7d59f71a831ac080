// Clients and gauges: load by wrk, first bytes, processor time and memory of a process.
import { execFile } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const CONNECTIONS = 32;
/** Of Linux, in what it shows to processes. */
const TICKS_PER_SECOND = 100;
/** Milliseconds without a byte after which a response is given up. */
const STALLED = 20_000;
const agent = new Agent({ keepAlive: true, timeout: STALLED });

export const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];

/**
 * Measures several things by turns, so that other work on the machine meets all of them: the median of each one's rounds.
 * A round may return several figures.
 */
export async function byTurns(rounds, measured) {
  const figures = Object.fromEntries(Object.keys(measured).map((name) => [name, []]));
  for (let round = 1; round <= rounds; round += 1) {
    await quiet();
    for (const [name, measure] of Object.entries(measured)) figures[name].push(await measure());
    console.error(`  round ${round} of ${rounds}`);
  }
  const medians = (of) => (typeof of[0] === 'number' ? median(of) : Object.fromEntries(Object.keys(of[0]).map((key) => [key, median(of.map((one) => one[key]))])));
  return Object.fromEntries(Object.entries(figures).map(([name, of]) => [name, medians(of)]));
}

/** A closed loop of wrk: requests per second, and processor time of the server in milliseconds per 1,000 requests. */
export async function load(server, { url, headers = {} }, seconds) {
  const options = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const before = processorSeconds(server.pid);
  const { stdout } = await promisify(execFile)('wrk', ['-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '--timeout', '30s', ...options, url]);
  const used = processorSeconds(server.pid) - before;
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`${url}: requests failed\n${stdout}`);
  const requests = Number(stdout.match(/(\d+) requests in/)[1]);
  return { rate: Number(stdout.match(/Requests\/sec:\s+([\d.]+)/)[1]), cpu: (used * 1e6) / requests };
}

/** Reads a response to its end: status, headers, bytes, and milliseconds until the first byte of the body. */
export function read({ url, headers = {} }, from = agent) {
  return new Promise((done, fail) => {
    const begun = performance.now();
    const request = get(url, { headers, agent: from }, (reply) => {
      let first;
      const parts = [];
      reply.on('data', (part) => {
        first ??= performance.now() - begun;
        parts.push(part);
      });
      reply.on('error', fail);
      reply.on('end', () => done({ status: reply.statusCode, headers: reply.headers, first, body: Buffer.concat(parts) }));
    });
    request.on('timeout', () => request.destroy(new Error(`${url}: no byte for ${STALLED} ms`)));
    request.on('error', fail);
  });
}

/** The same where anything but success ends the measurement. */
export async function whole(ask) {
  const reply = await read(ask);
  if (reply.status !== 200) throw new Error(`${ask.url}: ${reply.status} ${reply.body.subarray(0, 500)}`);
  return reply;
}

/** Responses to many clients at once, each with a connection of its own; of those whose connection fails or stalls, nothing. */
export async function readByMany(clients, ask) {
  const many = new Agent({ keepAlive: true, maxSockets: clients, timeout: STALLED });
  const replies = await Promise.all(Array.from({ length: clients }, () => read(ask, many).catch(() => undefined)));
  many.destroy();
  return replies;
}

/** Processor seconds of a process and of those below it: nginx works in children. */
function processorSeconds(pid) {
  const ticks = tree(pid).reduce((sum, fields) => sum + Number(fields[11]) + Number(fields[12]), 0);
  return ticks / TICKS_PER_SECOND;
}

/** Fields after the command's name in the `stat` of a process and of all below it. */
function tree(root) {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    try {
      return [{ pid: Number(pid), fields: readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ') }];
    } catch {
      return []; // It ended meanwhile.
    }
  });
  const below = (pid) => all.filter(({ fields }) => Number(fields[1]) === pid).flatMap((child) => [child.fields, ...below(child.pid)]);
  return [...all.filter((one) => one.pid === root).map(({ fields }) => fields), ...below(root)];
}

function memory(pid, figure) {
  return Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(new RegExp(`${figure}:\\s+(\\d+)`))[1]) / 1024;
}

export const resident = (pid) => memory(pid, 'VmRSS');

/** Mebibytes that a process has at most while something runs. */
export async function peak(pid, run) {
  writeFileSync(`/proc/${pid}/clear_refs`, '5'); // Resets the peak.
  await run();
  return memory(pid, 'VmHWM');
}

/** Shares of the processor time that others used, in percent, when this run paused: before each round. */
export const others = [];
/** Most that others may use when a round begins, and seconds that it waits for that. */
const QUIET = 10;
const PATIENCE = 30;

/** Waits until others leave the machine alone, but not for ever. */
export async function quiet() {
  const begun = performance.now();
  others.push(await usedByOthers());
  for (let used = others.at(-1); used > QUIET && performance.now() - begun < PATIENCE * 1000; ) used = await usedByOthers();
}

/** Share that is in use while this run does nothing. */
async function usedByOthers() {
  const times = () => readFileSync('/proc/stat', 'utf8').split('\n')[0].split(/\s+/).slice(1, 9).map(Number);
  const before = times();
  await sleep(500);
  const spent = times().map((ticks, at) => ticks - before[at]);
  const [all, idle] = [spent.reduce((sum, ticks) => sum + ticks, 0), spent[3] + spent[4]];
  return ((all - idle) / all) * 100;
}
