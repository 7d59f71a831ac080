// Container clients that people use, unmodified: each pushes, pulls, lists and deletes with the credential helper, pulls
// and lists with a pull token, which pushes nothing, and without anything what is public.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE                    its binary
//   PROVIDER                   provider.json of the identity provider
//   CRANE, ORAS                crane's binary, and that of the program that drives oras-go
// skopeo and buildah are on the PATH.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { call, check, checks, owned } from '../lib.mjs';

const { BASE_URL, BOWLINE, CRANE, ORAS } = process.env;
const host = new URL(BASE_URL).host;
const work = mkdtempSync(join(tmpdir(), 'clients.'));

// ---- homes: what a client finds in its surroundings ----------------------------------------------

/** A home of its own, with docker's configuration in it; `run` runs a command there. */
function home(name, config = {}) {
  const directory = join(work, name);
  const docker = join(directory, '.docker');
  mkdirSync(docker, { recursive: true });
  writeFileSync(join(docker, 'config.json'), JSON.stringify(config), { mode: 0o600 });
  writeFileSync(join(directory, 'policy.json'), '{"default":[{"type":"insecureAcceptAnything"}]}');
  const storage = join(directory, 'storage.conf');
  writeFileSync(storage, `[storage]\ndriver = "vfs"\ngraphroot = "${join(directory, 'images')}"\nrunroot = "${join(directory, 'run')}"\n`);
  const env = { HOME: directory, DOCKER_CONFIG: docker, PATH: `${directory}:${process.env.PATH}`, CONTAINERS_STORAGE_CONF: storage, BUILDAH_ISOLATION: 'chroot' };
  const run = (command, ...args) => {
    const { status, stdout, stderr, error } = spawnSync(command, args, { env, cwd: directory, encoding: 'utf8', timeout: 120_000 });
    if (error) throw error;
    return { status, stdout: stdout.trim(), stderr: stderr.trim() };
  };
  return { name, directory, run };
}

function succeeds(what, { status, stdout, stderr }) {
  check(what, status === 0, `ended with ${status}: ${stderr}`);
  return stdout;
}

function fails(what, { status, stdout, stderr }) {
  check(what, status !== 0 && /unauthorized|denied|forbidden|401|403/i.test(stderr), `ended with ${status}: ${stdout} ${stderr}`);
}

// ---- the clients: how each says the same things -----------------------------------------------------

const plain = ['--tls-verify=false'];
const clients = {
  skopeo: {
    push: (at, image) => at.run('skopeo', '--policy', 'policy.json', 'copy', '--dest-tls-verify=false', `oci:${layout}`, `docker://${image}`),
    pull: (at, image) => at.run('skopeo', '--policy', 'policy.json', 'copy', '--src-tls-verify=false', `docker://${image}`, `oci:${join(at.directory, 'skopeo')}`),
    tags: (at, repo) => at.run('skopeo', 'list-tags', ...plain, `docker://${repo}`),
    delete: (at, image) => at.run('skopeo', 'delete', ...plain, `docker://${image}`),
  },
  buildah: {
    push: (at, image) => at.run('buildah', 'push', '--signature-policy', 'policy.json', ...plain, at.run('buildah', 'images', '-q').stdout.split('\n')[0], `docker://${image}`),
    pull: (at, image) => at.run('buildah', 'pull', '--signature-policy', 'policy.json', ...plain, `docker://${image}`),
  },
  crane: {
    push: (at, image) => at.run(CRANE, 'push', '--insecure', layout, image),
    pull: (at, image) => at.run(CRANE, 'pull', '--insecure', '--format', 'oci', image, join(at.directory, 'crane')),
    tags: (at, repo) => at.run(CRANE, 'ls', '--insecure', repo),
    delete: (at, image) => at.run(CRANE, 'delete', '--insecure', image),
  },
  oras: {
    push: (at, image) => at.run(ORAS, 'push', image, layout),
    pull: (at, image) => at.run(ORAS, 'pull', image, join(at.directory, 'oras')),
    tags: (at, repo) => at.run(ORAS, 'tags', repo),
    delete: (at, image) => at.run(ORAS, 'delete', image),
  },
};

const layout = join(work, 'layout');

/** An image that a client makes from nothing. */
function made(at) {
  const container = succeeds('buildah begins an image', at.run('buildah', 'from', 'scratch'));
  writeFileSync(join(at.directory, 'hello'), 'hello '.repeat(100_000));
  succeeds('buildah adds a layer', at.run('buildah', 'add', container, 'hello', '/hello'));
  succeeds('buildah commits', at.run('buildah', 'commit', '--signature-policy', 'policy.json', container, `oci:${layout}`));
  succeeds('buildah commits to its own store', at.run('buildah', 'commit', '--signature-policy', 'policy.json', container));
}

/** Each client as somebody who may do everything. */
function asOwner(at, repo) {
  for (const [name, client] of Object.entries(clients)) {
    const image = `${repo}:${name}`;
    succeeds(`${name} pushes`, client.push(at, image));
    succeeds(`${name} pulls`, client.pull(at, image));
    if (client.tags) check(`${name} lists`, succeeds(`${name} asks for tags`, client.tags(at, repo)).includes(name));
    if (!client.delete) continue;
    succeeds(`${name} pushes what goes`, client.push(at, `${repo}-${name}:gone`));
    succeeds(`${name} deletes`, client.delete(at, `${repo}-${name}:gone`));
    check(`and ${name} finds it no more`, client.pull(at, `${repo}-${name}:gone`).status !== 0);
  }
}

/** Each client as somebody who may pull. */
function asReader(at, repo) {
  for (const [name, client] of Object.entries(clients)) {
    rmSync(join(at.directory, name), { recursive: true, force: true });
    succeeds(`${name} pulls, ${at.name}`, client.pull(at, `${repo}:${name}`));
    if (client.tags) check(`${name} lists, ${at.name}`, succeeds(`${name} asks for tags`, client.tags(at, repo)).includes(name));
    fails(`${name} does not push, ${at.name}`, client.push(at, `${repo}:more`));
  }
}

try {
  const { organization, identity, upstream } = await owned(`clients ${process.pid}`, 'walk-clients');
  const repo = `${host}/${organization}/team/app`;

  const keyless = home('with the helper');
  succeeds('the job signs in', keyless.run(BOWLINE, 'auth', 'login', '--api', BASE_URL, '--identity', identity, '--identity-token', upstream));
  succeeds('the helper is set up', keyless.run(BOWLINE, 'auth', 'configure-docker', '--helper-directory', keyless.directory));
  made(keyless);
  asOwner(keyless, repo);

  const told = JSON.parse(succeeds('a pull token is made', keyless.run(BOWLINE, 'auth', 'pull-token', 'create', '--parent', organization, '--repository', 'oci', '-o', 'json')));
  const auth = Buffer.from(`${told.identity_id}:${told.token}`).toString('base64');
  asReader(home('with a pull token', { auths: { [host]: { auth } } }), repo);

  const stranger = home('as nobody');
  for (const [name, client] of Object.entries(clients)) fails(`${name} does not pull what is not public`, client.pull(stranger, `${repo}:${name}`));
  const { repos } = await call('GET', `/registry/v2/repos?uidp.descendantsOf=${organization}&name=app`);
  await call('PATCH', `/registrypolicies/v1/repos/${repos[0].uid}`, { public: true });
  asReader(stranger, repo);
  console.log(`\nclients: ${checks()} checks passed`);
} catch (error) {
  console.error(`clients: FAILED after ${checks()} checks: ${error.stack}`);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
