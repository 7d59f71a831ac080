// Requests that schemathesis makes of the documents, to a server of its own: what it creates and deletes as the
// operator must not stand in the way of other suites.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { check } from '../lib.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const { BOWLINE, OPENAPI_VENV, OPENAPI_WHOLE } = process.env;
// Enough to reach every method in the sample, and ten minutes for the whole.
const sample = ['--phases', 'examples,fuzzing', '--max-examples', '4'];
const whole = ['--phases', 'examples,coverage,fuzzing', '--max-examples', '40', '--continue-on-failure'];

/** Two free ports of the loopback interface. */
async function ports() {
  const open = [0, 0].map(() => createServer().listen(0, '127.0.0.1'));
  await Promise.all(open.map((server) => once(server, 'listening')));
  const found = open.map((server) => server.address().port);
  open.forEach((server) => server.close());
  return found;
}

async function ready(url, server) {
  for (let rounds = 0; rounds < 300 && server.exitCode === null; rounds++) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return true;
    await setTimeout(100);
  }
  return false;
}

/** Checks both documents; `run` starts a program in the directory `work`. */
export async function requests(work, run, documents) {
  const [port, admin] = await ports();
  const base = `http://127.0.0.1:${port}`;
  const log = join(work, 'server.log');
  const data = join(work, 'data');
  const args = ['serve', '--data-dir', data, '--listen', `127.0.0.1:${port}`, '--admin-listen', `127.0.0.1:${admin}`];
  const server = spawn(BOWLINE, args, { stdio: ['ignore', openSync(log, 'w'), openSync(log, 'a')] });
  process.on('exit', () => server.kill());
  const isReady = await ready(`http://127.0.0.1:${admin}/readyz`, server);
  check('a server for requests starts', isReady, readFileSync(log, 'utf8'));

  const used = join(work, 'used');
  const schemathesis = (file, ...more) => {
    const token = execFileSync(BOWLINE, ['operator', 'token', '--reason', 'conformance', '--data-dir', data], { encoding: 'utf8' }).trim();
    const env = { OPERATOR_TOKEN: token, OPENAPI_USED: used, PYTHONPATH: here, PYTHONDONTWRITEBYTECODE: '1' };
    const config = ['--config-file', join(here, 'schemathesis.toml')];
    const options = ['--seed', '1', '--generation-database', 'none', '--no-shrink', '--warnings', 'off', '--no-color'];
    return run(env, join(OPENAPI_VENV, 'bin/schemathesis'), ...config, 'run', file, '-u', base, ...options, ...more);
  };

  // A document that promises another response than the server's must be reported.
  const path = '/iam/v2/groups';
  const { get } = documents.v2.paths[path];
  const content = { 'application/json': { schema: { type: 'array' } } };
  const wrong = { ...get, responses: { ...get.responses, 200: { description: 'A list.', content } } };
  writeFileSync(join(work, 'wrong.json'), JSON.stringify({ ...documents.v2, paths: { [path]: { get: wrong } } }));
  const { status, output } = schemathesis('wrong.json', ...sample);
  const isReported = status === 1 && /ST10\d/.test(output);
  check('schemathesis reports a response that is not as documented', isReported, output.slice(-3000));

  writeFileSync(used, '');
  for (const version of Object.keys(documents)) {
    const { status, output } = schemathesis(`${version}.json`, ...(OPENAPI_WHOLE ? whole : sample));
    const cases = Number(/(\d+) generated/.exec(output)?.[1] ?? 0);
    const isClean = status === 0 && cases > 300;
    check(`${cases} requests of the document of ${version} get what it says`, isClean, output.slice(-12000));
  }
  check('the server still runs', server.exitCode === null && existsSync(data), readFileSync(log, 'utf8').slice(-3000));
  const names = new Set(readFileSync(used, 'utf8').split('\n').filter(Boolean));
  const written = readFileSync(join(here, 'exceptions.py'), 'utf8').matchAll(/Exempt\(\s*"([^"]+)"/g);
  const all = [...written].map((found) => found[1]);
  check(`there are at most 20 exceptions: ${all.length}`, all.length > 0 && all.length <= 20);
  const unused = all.filter((name) => !names.has(name));
  if (OPENAPI_WHOLE) check('every exception is of use', unused.length === 0, unused.join('\n'));
  server.kill();
  await once(server, 'exit');
}
