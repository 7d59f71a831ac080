// What the events part of the suite needs besides a browser: the SDK's receiver, and an image to push.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline';

/** Starts the SDK's receiver for a group; `wait` gives what it has said once it has said so much, or after ten seconds. */
export async function receive(sdk, server, group) {
  const child = spawn(sdk, ['-base-url', server, 'receive', group]);
  const came = [];
  createInterface({ input: child.stdout }).on('line', (line) => came.push(JSON.parse(line)));
  const url = await new Promise((resolve, reject) => {
    child.stderr.once('data', (data) => resolve(data.toString().trim()));
    child.once('close', (status) => reject(new Error(`the receiver ended with ${status}`)));
  });
  const wait = async (count) => {
    for (let tries = 0; tries < 200 && came.length < count; tries += 1) await new Promise((later) => { setTimeout(later, 50); });
    return came;
  };
  return { url, wait, stop: () => child.kill() };
}

/** Pushes the smallest of images: its digest, and how to pull it. */
export async function pushed(server, operator, name, tag) {
  const authorization = await exchanged(server, operator);
  const send = async (method, where, body, type = 'application/octet-stream') => {
    const answer = await fetch(`${server}/v2/${name}/${where}`, { method, body, headers: { authorization, 'content-type': type } });
    if (!answer.ok) throw new Error(`${method} ${where}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const config = Buffer.from('{}');
  const digest = `sha256:${createHash('sha256').update(config).digest('hex')}`;
  await send('POST', `blobs/uploads/?digest=${digest}`, config);
  const type = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = { schemaVersion: 2, mediaType: type, config: { mediaType: 'application/vnd.oci.image.config.v1+json', size: config.length, digest }, layers: [], annotations: { tag } };
  const answer = await send('PUT', `manifests/${tag}`, JSON.stringify(manifest), type);
  return { digest: answer.headers.get('docker-content-digest'), pull: () => send('GET', `manifests/${tag}`) };
}

/** The operator's right at the registry, as a header. */
async function exchanged(server, operator) {
  const answer = await fetch(`${server}/sts/exchange?aud=${new URL(server).host}`, { headers: { authorization: `Bearer ${operator}` } });
  if (!answer.ok) throw new Error(`exchange: ${answer.status} ${await answer.text()}`);
  return `Bearer ${(await answer.json()).token}`;
}
