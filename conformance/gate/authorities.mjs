// Fulcio, which certifies who signs, and a timestamp authority, which proves when: of this run alone, so that nothing that
// they certify is trusted elsewhere.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

/** A port that nothing listens on. */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject).listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** The answer at `url`, once there is one. */
async function answered(url, log) {
  for (const until = Date.now() + 30_000; Date.now() < until; ) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return answer;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`nothing answers at ${url}: ${readFileSync(log, 'utf8').slice(-2000)}`);
}

const children = [];

/** Starts a program whose output is in a log. */
function run(log, command, ...args) {
  const file = openSync(log, 'w');
  children.push(spawn(command, args, { stdio: ['ignore', file, file] }));
}

/** Ends what was started here. */
export function stop() {
  for (const child of children) child.kill();
}

/** Starts a Fulcio, which accepts tokens of the issuer for the audience `sigstore`; its address and chain of certificates. */
export async function startFulcio({ binary, directory, issuer }) {
  mkdirSync(directory);
  const [port, grpc, metrics] = await Promise.all([freePort(), freePort(), freePort()]);
  const [config, log, chain] = ['config.json', 'fulcio.log', 'fulcio.pem'].map((name) => join(directory, name));
  writeFileSync(config, JSON.stringify({ OIDCIssuers: { [issuer]: { IssuerURL: issuer, ClientID: 'sigstore', Type: 'email' } } }));
  run(log, binary, 'serve', '--host', '127.0.0.1', '--port', `${port}`, '--grpc-host', '127.0.0.1', '--grpc-port', `${grpc}`, '--metrics-port', `${metrics}`,
    '--legacy-unix-domain-socket', join(directory, 'fulcio.sock'), '--ca', 'ephemeralca', '--ct-log-url', '', '--config-path', config);
  const url = `http://127.0.0.1:${port}`;
  const bundle = await (await answered(`${url}/api/v2/trustBundle`, log)).json();
  writeFileSync(chain, bundle.chains[0].certificates.join('\n'));
  return { url, chain };
}

/** Starts a timestamp authority, of which a machine can have one: the port of its metrics is fixed. */
export async function startTimestamps({ binary, directory }) {
  const port = await freePort();
  const [log, chain] = ['timestamps.log', 'timestamps.pem'].map((name) => join(directory, name));
  run(log, binary, 'serve', '--host', '127.0.0.1', '--port', `${port}`, '--timestamp-signer', 'memory', '--disable-ntp-monitoring');
  const url = `http://127.0.0.1:${port}/api/v1/timestamp`;
  writeFileSync(chain, await (await answered(`${url}/certchain`, log)).text());
  return { url, chain };
}

/** A token of the provider that names a person. */
export function person(provider, email) {
  const claims = { email, email_verified: true, nonce: randomBytes(8).toString('hex') };
  return provider.signed(provider.claims('gate', 'sigstore', claims));
}
