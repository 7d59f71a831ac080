// Another server, and the organization that `bowline export` and `bowline apply` bring to it.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';

const { BOWLINE } = process.env;

async function free() {
  const servers = [0, 0].map(() => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => new Promise((done) => server.once('listening', done))));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

/** A server of its own in a directory: its address, an operator's token, and `stop`. */
export async function another(work) {
  const [port, admin] = await free();
  const data = join(work, 'another');
  const addresses = ['--listen', `127.0.0.1:${port}`, '--admin-listen', `127.0.0.1:${admin}`];
  const server = spawn(BOWLINE, ['serve', '--data-dir', data, ...addresses, '--log', 'warn'], { stdio: 'ignore' });
  const ended = new Promise((done) => server.once('exit', done));
  const stop = () => {
    server.kill('SIGTERM');
    return ended;
  };
  for (let n = 0; !(await fetch(`http://127.0.0.1:${admin}/readyz`).then((answer) => answer.ok, () => false)); n += 1) {
    if (n > 300 || server.exitCode !== null) {
      await stop();
      throw new Error('the other server did not become ready');
    }
    await new Promise((done) => setTimeout(done, 100));
  }
  const token = execFileSync(BOWLINE, ['operator', 'token', '--reason', 'conformance', '--data-dir', data], { encoding: 'utf8' }).trim();
  return { base: `http://127.0.0.1:${port}`, token, stop };
}

/** Runs the command line against a server: the exit code and what was printed. */
export function bowline(home, base, token, ...args) {
  const env = { PATH: process.env.PATH, HOME: home, BOWLINE_API: base, BOWLINE_TOKEN: token };
  const result = spawnSync(BOWLINE, args, { env, encoding: 'utf8', timeout: 120e3 });
  return { status: result.status, text: `${result.stdout}\n${result.stderr}` };
}

/** Lists of the kinds of resources, by the names that the provider has for them. */
const LISTS = {
  chainguard_group: '/iam/v2/groups',
  chainguard_role: '/iam/v2/roles',
  chainguard_identity: '/iam/v2/identities',
  chainguard_identity_provider: '/iam/v2/identityProviders',
  chainguard_image_repo: '/registry/v2/repos',
  chainguard_rolebinding: '/iam/v2/roleBindings',
  chainguard_subscription: '/events/v2/subscriptions',
};

/** UIDPs of resources in a group of the other server: by name, or the only one where there are no names. */
export async function finder({ base, token }, organization) {
  const list = async (path, query) => {
    const answer = await fetch(`${base}${path}?${query}`, { headers: { authorization: `Bearer ${token}` } });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return Object.values(await answer.json()).find(Array.isArray);
  };
  const [root] = await list('/iam/v2/groups', `name=${encodeURIComponent(organization)}`);
  const [folder] = await list('/iam/v2/groups', `uidp.descendantsOf=${root.uid}`);
  const find = async (type, name) => {
    // An association has the UIDP of its group.
    if (type === 'chainguard_account_associations') return folder.uid;
    const below = `uidp.descendantsOf=${type === 'chainguard_group' ? root.uid : folder.uid}`;
    const found = (await list(LISTS[type], below)).filter((one) => name === undefined || one.name === name);
    if (found.length !== 1) throw new Error(`${type} ${name}: ${found.length} on the other server`);
    return found[0].uid;
  };
  return { organization: root.uid, find };
}
