// Image policies with the programs that people sign, push and pull with, unmodified: cosign of two versions signs and
// attests with a key, and without one by a certificate of Fulcio and a timestamp under a root of their own; skopeo, crane,
// buildah and podman pull what the rules let through, and print why not otherwise.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE                    its binary
//   PROVIDER                   provider.json of the identity provider
//   CRANE, COSIGN2, COSIGN3    the binaries of crane, cosign 2 and cosign 3
//   FULCIO, TIMESTAMP_SERVER   those of Fulcio and of a timestamp authority
//   UPDATE_GOLDEN=1            write the table of what each client prints again
// skopeo, buildah and podman are on the PATH.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { call, check, checks, owned } from '../lib.mjs';
import { IdentityProvider } from '../walk/lib/idp.mjs';
import { person, startFulcio, startTimestamps, stop } from './authorities.mjs';

const { BASE_URL, BOWLINE, CRANE, COSIGN2, COSIGN3, FULCIO, PROVIDER, TIMESTAMP_SERVER, UPDATE_GOLDEN } = process.env;
const host = new URL(BASE_URL).host;
const work = mkdtempSync(join(tmpdir(), 'gate.'));
// Of the credential helper: programs refuse to run what is in their working directory.
const helpers = join(work, 'helpers');
mkdirSync(helpers);
const golden = join(dirname(fileURLToPath(import.meta.url)), 'golden.txt');
const PROVENANCE = 'https://slsa.dev/provenance/v1';
const BUILDER = 'builder@example.com';

/** A home of its own, in which `run` runs a command. */
function home(name, config) {
  const directory = join(work, name);
  mkdirSync(join(directory, '.docker'), { recursive: true });
  writeFileSync(join(directory, '.docker', 'config.json'), JSON.stringify(config), { mode: 0o600 });
  writeFileSync(join(directory, 'policy.json'), '{"default":[{"type":"insecureAcceptAnything"}]}');
  const storage = join(directory, 'storage.conf');
  writeFileSync(storage, `[storage]\ndriver = "vfs"\ngraphroot = "${join(directory, 'images')}"\nrunroot = "${join(directory, 'run')}"\n`);
  const env = {
    HOME: directory, DOCKER_CONFIG: join(directory, '.docker'), PATH: `${helpers}:${process.env.PATH}`, CONTAINERS_STORAGE_CONF: storage,
    BUILDAH_ISOLATION: 'chroot', COSIGN_PASSWORD: 'password', REGISTRY_AUTH_FILE: join(directory, '.docker', 'config.json'),
  };
  const run = (command, ...args) => {
    const { status, stdout, stderr, error } = spawnSync(command, args, { env, cwd: directory, encoding: 'utf8', timeout: 120_000 });
    if (error) throw error;
    return { status, stdout: stdout.trim(), stderr: stderr.trim() };
  };
  return { directory, run };
}

function succeeds(what, { status, stdout, stderr }) {
  check(what, status === 0, `ended with ${status}: ${stderr}`);
  return stdout;
}

/** How each client pulls an image by digest. */
const pulls = {
  skopeo: (at, image) => at.run('skopeo', '--policy', 'policy.json', 'copy', '--src-tls-verify=false', `docker://${image}`, `dir:${join(at.directory, 'skopeo')}`),
  crane: (at, image) => at.run(CRANE, 'pull', '--insecure', '--format', 'oci', image, join(at.directory, 'crane')),
  buildah: (at, image) => at.run('buildah', 'pull', '--policy', 'always', '--signature-policy', 'policy.json', '--tls-verify=false', image),
  podman: (at, image) => at.run('podman', 'pull', '--signature-policy', join(at.directory, 'policy.json'), '--tls-verify=false', image),
};

/** An image of its own content, as a layout. */
function layout(at, name) {
  const container = succeeds(`buildah begins ${name}`, at.run('buildah', 'from', 'scratch'));
  writeFileSync(join(at.directory, name), `${name} `.repeat(1000));
  succeeds(`buildah adds a layer to ${name}`, at.run('buildah', 'add', container, name, `/${name}`));
  const path = join(work, `layout-${name}`);
  succeeds(`buildah commits ${name}`, at.run('buildah', 'commit', '--signature-policy', 'policy.json', container, `oci:${path}`));
  return path;
}

/** Pushes an image, and returns its reference by digest. */
function push(at, repo, name) {
  const path = layout(at, name);
  succeeds(`skopeo pushes ${name}`, at.run('skopeo', '--policy', 'policy.json', 'copy', '--dest-tls-verify=false', `oci:${path}`, `docker://${repo}:${name}`));
  const digest = succeeds(`the digest of ${name}`, at.run(CRANE, 'digest', '--insecure', `${repo}:${name}`));
  return `${repo}@${digest}`;
}

const unlogged = { [COSIGN2]: ['--tlog-upload=false'], [COSIGN3]: ['--tlog-upload=false', '--use-signing-config=false'] };
const attestation = ['--type', PROVENANCE, '--predicate', 'predicate.json'];

/** Options of cosign to sign with a key. */
const withKey = (cosign, key) => ['--key', key, ...unlogged[cosign]];

/** Signs or attests. */
function cosigned(at, cosign, image, options) {
  const [what, ...more] = options;
  return at.run(cosign, what, '--yes', ...more, '--allow-http-registry', image);
}

/** Options of cosign to sign without a key: as a person that a Fulcio certifies, in a bundle. */
function withoutKey(at, cosign, fulcio, token) {
  const files = [`${fulcio.name}-signing.json`, `${fulcio.name}-root.json`].map((name) => join(at.directory, name));
  return ['--signing-config', files[0], '--trusted-root', files[1], '--identity-token', token, ...(cosign === COSIGN2 ? ['--new-bundle-format'] : [])];
}

/** Options of cosign 2 to sign without a key, in the format from before bundles. */
const beforeBundles = (fulcio, timestamps, token) => [
  '--fulcio-url', fulcio.url, '--timestamp-server-url', timestamps.url, '--insecure-skip-verify', '--tlog-upload=false', '--identity-token', token,
];

/** Tells cosign where the authorities are; returns their root. */
function introduce(at, fulcio, timestamps) {
  const since = 'start-time=2020-01-01T00:00:00Z';
  const service = ({ url }) => `url=${url},api-version=1,${since},operator=example.com`;
  const trusted = ({ url, chain }) => `url=${url},certificate-chain=${chain},${since}`;
  succeeds(`cosign notes the ${fulcio.name} Fulcio`, at.run(COSIGN3, 'signing-config', 'create', '--fulcio', service(fulcio),
    '--tsa', service(timestamps), '--tsa-config', 'ANY', '--out', `${fulcio.name}-signing.json`));
  succeeds(`cosign writes the root of the ${fulcio.name} Fulcio`, at.run(COSIGN3, 'trusted-root', 'create', '--fulcio', trusted(fulcio),
    '--tsa', trusted(timestamps), '--out', `${fulcio.name}-root.json`));
  return readFileSync(join(at.directory, `${fulcio.name}-root.json`), 'utf8');
}

/** A signature in the format of another program, as an artifact that refers to the image. */
async function signedElsewhere(at, repo, image) {
  const path = repo.slice(host.length + 1);
  const token = succeeds('a token for the registry', at.run(BOWLINE, 'auth', 'token', '--audience', host));
  const headers = { authorization: `Bearer ${token}` };
  const bytes = { config: '{}', layer: '{"payload":"c29tZXRoaW5n","signature":"c29tZXRoaW5n"}' };
  const digests = {};
  for (const [name, content] of Object.entries(bytes)) {
    digests[name] = `sha256:${(await import('node:crypto')).createHash('sha256').update(content).digest('hex')}`;
    const begun = await fetch(`${BASE_URL}/v2/${path}/blobs/uploads/`, { method: 'POST', headers });
    check(`an upload of the ${name} begins`, begun.status === 202, await begun.text());
    const place = new URL(begun.headers.get('location'), BASE_URL);
    place.searchParams.set('digest', digests[name]);
    const put = await fetch(place, { method: 'PUT', headers, body: content });
    check(`the ${name} of a signature in another format is pushed`, put.status === 201, await put.text());
  }
  const digest = image.split('@')[1];
  const subject = await fetch(`${BASE_URL}/v2/${path}/manifests/${digest}`, { headers: { ...headers, accept: 'application/vnd.oci.image.manifest.v1+json' } });
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    artifactType: 'application/vnd.cncf.notary.signature',
    config: { mediaType: 'application/vnd.oci.empty.v1+json', digest: digests.config, size: bytes.config.length },
    layers: [{ mediaType: 'application/jose+json', digest: digests.layer, size: bytes.layer.length }],
    subject: { mediaType: 'application/vnd.oci.image.manifest.v1+json', digest, size: Number(subject.headers.get('content-length')) },
  });
  const own = `sha256:${(await import('node:crypto')).createHash('sha256').update(manifest).digest('hex')}`;
  const put = await fetch(`${BASE_URL}/v2/${path}/manifests/${own}`, {
    method: 'PUT', headers: { ...headers, 'content-type': 'application/vnd.oci.image.manifest.v1+json' }, body: manifest,
  });
  check('the signature in another format is pushed', put.status === 201, await put.text());
}

/** What a client printed, without what differs from run to run. */
function printed(text, names) {
  let line = text.split('\n').filter((one) => /denied|DENIED|policy|forbidden|403/i.test(one)).pop() ?? text;
  for (const [from, to] of names) line = line.replaceAll(from, to);
  return line.replace(/time="[^"]*"/g, 'time="TIME"').replace(/\d{4}[/-]\d\d[/-]\d\d[T ][\d:.+Z]+/g, 'TIME').replaceAll(host, 'HOST').trim();
}

/** Every client pulls every image; a row for each, with the outcome and what a refusal says. */
function table(title, at, images, names) {
  const rows = [`## ${title}`, ''];
  for (const [what, image] of Object.entries(images)) {
    for (const [client, pull] of Object.entries(pulls)) {
      rmSync(join(at.directory, client), { recursive: true, force: true });
      const { status, stderr } = pull(at, image);
      rows.push(`${what} | ${client} | ${status === 0 ? 'pulled' : `refused: ${printed(stderr, names)}`}`);
    }
  }
  return [...rows, ''];
}

/** What CheckPolicies says of an image: the result and mode of each rule, by name. */
async function checked(repoUid, image) {
  const { results } = await call('POST', `/registry/v1/repos/${repoUid}:checkPolicies`, { digest: image.split('@')[1] });
  return results;
}

const provider = new IdentityProvider(PROVIDER);
try {
  const fulcio = {};
  for (const name of ['own', 'strange']) {
    fulcio[name] = { name, ...(await startFulcio({ binary: FULCIO, directory: join(work, name), issuer: provider.issuer })) };
  }
  const timestamps = await startTimestamps({ binary: TIMESTAMP_SERVER, directory: work });
  const { organization, identity, upstream } = await owned(`gate ${process.pid}`, 'walk-gate');
  const repo = `${host}/${organization}/team/app`;
  const owner = home('owner', {});
  succeeds('the owner signs in', owner.run(BOWLINE, 'auth', 'login', '--api', BASE_URL, '--identity', identity, '--identity-token', upstream));
  succeeds('the helper is set up', owner.run(BOWLINE, 'auth', 'configure-docker', '--helper-directory', helpers));
  const told = JSON.parse(succeeds('a pull token is made', owner.run(BOWLINE, 'auth', 'pull-token', 'create', '--parent', organization, '--repository', 'oci', '-o', 'json')));
  const auth = Buffer.from(`${told.identity_id}:${told.token}`).toString('base64');
  const reader = home('reader', { auths: { [host]: { auth } } });

  for (const name of ['right', 'other']) {
    succeeds(`cosign makes the ${name} key`, owner.run(COSIGN2, 'generate-key-pair', '--output-key-prefix', name));
  }
  writeFileSync(join(owner.directory, 'predicate.json'), JSON.stringify({ buildDefinition: { buildType: 'https://example.com/build' }, runDetails: { builder: { id: 'https://example.com/builder' } } }));
  const root = introduce(owner, fulcio.own, timestamps);
  introduce(owner, fulcio.strange, timestamps);
  const builder = person(provider, BUILDER);
  const other = person(provider, 'other@example.com');
  // The name of an image, which cosign signs it, and how.
  const signed = {
    'signed and attested by cosign 2': ['cosign-two', COSIGN2, withKey(COSIGN2, 'right.key')],
    'signed and attested by cosign 3': ['cosign-three', COSIGN3, withKey(COSIGN3, 'right.key')],
    'signed and attested without a key by cosign 2': ['keyless-two', COSIGN2, withoutKey(owner, COSIGN2, fulcio.own, builder)],
    'signed and attested without a key by cosign 3': ['keyless-three', COSIGN3, withoutKey(owner, COSIGN3, fulcio.own, builder)],
    'signed with another key': ['other-key', COSIGN2, withKey(COSIGN2, 'other.key')],
    'signed without a key as another identity': ['other-identity', COSIGN3, withoutKey(owner, COSIGN3, fulcio.own, other)],
    'signed without a key under another root': ['other-root', COSIGN3, withoutKey(owner, COSIGN3, fulcio.strange, builder)],
    'signed without a key in the format before bundles': ['before-bundles', COSIGN2, beforeBundles(fulcio.own, timestamps, builder)],
  };
  const images = {};
  for (const [what, [name, cosign, options]] of Object.entries(signed)) {
    images[what] = push(owner, repo, name);
    succeeds(`an image is ${what}: signature`, cosigned(owner, cosign, images[what], ['sign', ...options]));
    succeeds(`an image is ${what}: attestation`, cosigned(owner, cosign, images[what], ['attest', ...attestation, ...options]));
  }
  for (const [what, name] of [['signed in another format', 'other-format'], ['signed and not attested', 'no-attestation'], ['not signed', 'nothing']]) {
    images[what] = push(owner, repo, name);
  }
  succeeds('an image is signed and not attested', cosigned(owner, COSIGN2, images['signed and not attested'], ['sign', ...withKey(COSIGN2, 'right.key')]));
  await signedElsewhere(owner, repo, images['signed in another format']);

  const { repos } = await call('GET', `/registry/v2/repos?uidp.descendantsOf=${organization}&name=app`);
  const uid = repos[0].uid;
  const signers = {
    publicKeys: [readFileSync(join(owner.directory, 'right.pub'), 'utf8')], certificates: [{ identity: BUILDER, issuer: provider.issuer }],
  };
  const rules = (mode) => [
    { name: 'signed', mode, signature: { signers } },
    { name: 'built', mode, attestation: { predicateType: PROVENANCE, signers } },
  ];
  const names = Object.entries(images).map(([, image]) => [image.split('@')[1], 'DIGEST']).concat([[uid, 'REPOSITORY'], [organization, 'ORGANIZATION']]);
  const rows = ['# What clients print about images that a policy requires to be signed and attested', ''];
  for (const mode of ['IMAGE_POLICY_MODE_LOG', 'IMAGE_POLICY_MODE_ENFORCE']) {
    await call('PATCH', `/imagepolicies/v1/scopes/${uid}?update_mask=rules,trusted_root`, { rules: rules(mode), trustedRoot: root });
    rows.push(...table(mode, reader, images, names));
  }
  const passes = Object.keys(signed).slice(0, 4);
  for (const [what, image] of Object.entries(images)) {
    const results = await checked(uid, image);
    const denied = results.filter((one) => one.result !== 'ALLOWED').length;
    check(`CheckPolicies agrees about an image ${what}`, (denied === 0) === passes.includes(what), JSON.stringify(results));
    const outcome = rows.filter((row) => row.startsWith(`${what} |`)).slice(Object.keys(pulls).length);
    check(`clients ${passes.includes(what) ? 'pull' : 'do not pull'} an image ${what}`, outcome.every((row) => row.endsWith('| pulled') === passes.includes(what)), outcome.join('\n'));
    check(`who may push pulls an image ${what}`, pulls.crane(owner, image).status === 0);
  }
  check('cosign verifies what it signed, as a reader', reader.run(COSIGN2, 'verify', '--key', join(owner.directory, 'right.pub'), '--insecure-ignore-tlog', '--allow-http-registry', images['signed and not attested']).status === 0);
  check('skopeo does not inspect what is refused', reader.run('skopeo', 'inspect', '--raw', '--tls-verify=false', `docker://${images['not signed']}`).status !== 0);
  const text = `${rows.join('\n').trim()}\n`;
  if (UPDATE_GOLDEN) writeFileSync(golden, text);
  check('what clients print is the golden table', readFileSync(golden, 'utf8') === text, text);
  console.log(`\ngate: ${checks()} checks passed`);
} catch (error) {
  console.error(`gate: FAILED after ${checks()} checks: ${error.stack}`);
  process.exitCode = 1;
} finally {
  stop();
  rmSync(work, { recursive: true, force: true });
}
