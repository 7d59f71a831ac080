// An organization with something on every page of the console, and texts that would do something if they were not escaped.
import { createHash } from 'node:crypto';
import { call } from '../lib.mjs';

const { BASE_URL, OPERATOR_TOKEN } = process.env;

export const HOSTILE = '<img src=x onerror=alert(1)>"><svg/onload=alert(1)>';

const sha256 = (bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Fills the server; the ids of what the pages are about. */
export async function seed() {
  const org = (await call('POST', '/iam/v2/groups', { name: 'rockets', description: 'Everything that flies, and what it stands on' })).uid;
  const group = (await call('POST', `/iam/v2/groups/${org}`, { name: 'engines', description: HOSTILE })).uid;
  for (const name of ['guidance', 'launch pads', 'payloads', 'telemetry']) {
    await call('POST', `/iam/v2/groups/${org}`, { name, description: `The team of ${name}` });
  }
  const roles = (await call('GET', '/iam/v2/roles?page_size=200')).roles;
  const role = (name) => roles.find((one) => one.name === name).uid;
  await call('POST', `/iam/v2/roles/${org}`, { name: 'release manager', description: 'Tags releases', capabilities: ['CAP_REPO_LIST', 'CAP_TAG_LIST'] });
  const identities = [];
  for (const [name, subject, held] of [
    ['release workflow', 'repo:rockets/engine:ref:refs/heads/main', 'registry.push'],
    ['cluster of the launch site', 'system:serviceaccount:site:puller', 'registry.pull'],
    ['hostile', HOSTILE, 'viewer'],
  ]) {
    const identity = (await call('POST', `/iam/v2/identities/${org}`, {
      name, description: `Workload ${HOSTILE}`, claimMatch: { issuer: 'https://issuer.example', subject },
    })).uid;
    identities.push(identity);
    await call('POST', `/iam/v2/roleBindings/${name.startsWith('release') ? group : org}`, { identityUid: identity, roleUid: role(held) });
  }
  const repo = (await call('POST', `/registry/v2/repos/${group}`, { name: 'engine', description: 'The engine that lifts it all' })).uid;
  for (const name of ['nozzle', 'pump', 'igniter']) await call('POST', `/registry/v2/repos/${group}`, { name, description: `Image of the ${name}` });
  const older = await push(repo, ['v1.3.9', 'latest'], ['system']);
  const image = await push(repo, ['v1.4.0', 'latest'], ['system', 'engine']);
  const tag = (await call('GET', `/registry/v2/tags?uidp.childrenOf=${repo}&name=latest`)).tags[0].uid;
  await operations(org, repo, older);
  const empty = (await call('POST', '/iam/v2/groups', { name: 'boats' })).uid;
  const advisory = await advisories(org);
  const policy = await call('POST', `/libraries/v1/policies/${org}`, {
    name: 'a week of patience', description: 'New versions wait', cooldownDays: 7,
    blockList: [{ purl: 'pkg:npm/event-stream' }], allowList: [{ purl: 'pkg:npm/left-pad', bypassCooldown: true, justification: 'ours' }],
  });
  await call('POST', `/libraries/v1/policy-bindings/${org}`, { policy: policy.id, ecosystem: 'JAVASCRIPT', mode: 'LIBRARY_POLICY_BINDING_MODE_LOG' });
  const subscription = (await call('POST', `/events/v1/subscriptions/${org}`, { sink: 'http://127.0.0.1:9/hook' })).id;
  await call('POST', '/catalog/v1/versions:import', {
    versions: ['1.0.0', '1.1.0', '2.0.0'].map((version) => ({
      ecosystem: 'PYTHON', name: 'orbit', version, source: 'SOURCE_TYPE_INTERNAL', description: 'Computes orbits', license: 'MIT',
      files: [{ name: `orbit-${version}.tar.gz`, sizeBytes: '120000', sha256: 'a'.repeat(64) }],
    })),
  });
  const artifact = (await call('GET', '/libraries/v2/artifacts?ecosystems=ECOSYSTEM_PYTHON')).artifacts[0].uid;
  await call('POST', `/iam/v2/groupInvites/${org}`, { roleUid: role('viewer'), ttl: '86400s', email: 'ada@rockets.example' });
  await firstAttempt(subscription, org);
  const bare = await pushBare(repo);
  const provider = await providerOf(org, role('viewer'));
  const hollow = await hollows(empty, bare, role('viewer'));
  return {
    org, empty, hollow, bare, group, repo, image, older, tag, advisory, artifact, subscription, provider,
    identity: identities[0], role: role('viewer'),
  };
}

/** An identity provider that no one signs in with. */
async function providerOf(org, defaultRole) {
  const oidc = { issuer: 'https://login.example', clientId: 'bowline', clientSecret: 'hidden', additionalScopes: ['email'] };
  return (await call('POST', `/iam/v2/identityProviders/${org}`, { name: 'login', description: HOSTILE, defaultRole, oidc })).uid;
}

/** One of each kind with nothing in it. */
async function hollows(org, bare, viewer) {
  const made = async (where, body) => (await call('POST', where, body)).uid;
  const repo = await made(`/registry/v2/repos/${org}`, { name: 'nothing' });
  const tagged = await made(`/registry/v2/repos/${org}`, { name: 'one-tag' });
  await pushBare(tagged);
  const advisory = (await call('POST', '/vulnerabilities/v1/advisories', {
    parentId: org, advisory: { artifactType: 'apk', artifactName: 'nothing', componentName: 'nothing', componentType: 'apk' },
  })).id;
  return {
    repo,
    advisory,
    provider: await providerOf(org, viewer),
    tag: await made(`/registry/v2/tags/${tagged}`, { name: 'once', digest: bare }),
    group: await made(`/iam/v2/groups/${org}`, { name: 'nothing' }),
    role: await made(`/iam/v2/roles/${org}`, { name: 'nothing', capabilities: ['CAP_REPO_LIST'] }),
    identity: await made(`/iam/v2/identities/${org}`, { name: 'nothing', claimMatch: { issuer: 'https://issuer.example', subject: 'nothing' } }),
    subscription: (await call('POST', `/events/v1/subscriptions/${org}`, { sink: 'http://127.0.0.1:9/quiet' })).id,
  };
}

/** What needs attention: a quota that is almost used up, an upstream that does not answer; and a tag that went back. */
async function operations(org, repo, older) {
  const { bytes } = await call('GET', `/statistics/v1/usage/${org}`);
  await call('PATCH', `/registrypolicies/v1/groups/${org}`, { byteQuota: String(Math.ceil(Number(bytes) / 0.91)), retention: { keepLast: 20 } });
  await call('PATCH', `/registrypolicies/v1/repos/${repo}`, {
    immutableTagPatterns: ['v.*'], upstream: { url: 'https://registry.invalid', tagPatterns: ['latest'] },
  });
  await call('POST', `/replication/v1/repos/${repo}:checkUpstream`, {});
  await call('POST', `/registry/v2/tags/${repo}`, { name: 'latest', digest: older });
}

/** Waits until a delivery was tried, which its event in the group begins. */
async function firstAttempt(subscription, org) {
  await call('PATCH', `/iam/v2/groups/${org}`, { description: 'Everything that flies' });
  for (let tries = 0; tries < 200; tries += 1) {
    if ((await call('GET', `/events/bowline/v1/deliveryStatus/${subscription}`)).attempts > 0) return;
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
  throw new Error('no delivery was tried');
}

/** How a request to the registry is sent, and a blob stored, in a repository. */
async function pusher(repo) {
  const answer = await fetch(`${BASE_URL}/sts/exchange?aud=${new URL(BASE_URL).host}`, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } });
  const authorization = `Bearer ${(await answer.json()).token}`;
  const send = async (method, where, body, type = 'application/octet-stream') => {
    const reply = await fetch(`${BASE_URL}/v2/${repo}/${where}`, { method, body, headers: { authorization, 'content-type': type } });
    if (!reply.ok) throw new Error(`${method} ${where}: ${reply.status} ${await reply.text()}`);
    return reply;
  };
  const blob = async (bytes, mediaType) => {
    const digest = sha256(bytes);
    await send('POST', `blobs/uploads/?digest=${digest}`, bytes);
    return { mediaType, size: bytes.length, digest };
  };
  return { send, blob };
}

/** Pushes an image without layers, tags, SBOM or scan; its digest. */
async function pushBare(repo) {
  const { send, blob } = await pusher(repo);
  const config = await blob(Buffer.from('{"architecture":"arm64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}'), 'application/vnd.oci.image.config.v1+json');
  const type = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = JSON.stringify({ schemaVersion: 2, mediaType: type, config, layers: [] });
  return (await send('PUT', `manifests/${sha256(Buffer.from(manifest))}`, manifest, type)).headers.get('docker-content-digest');
}

/** Pushes an image with these tags and layers, a build history, a configuration, an SBOM and a scan; its digest. `more` is
 *  written into its configuration, its annotations, its SBOM and its scan. */
export async function push(repo, tags, contents, more = []) {
  const { send, blob } = await pusher(repo);
  const layers = [];
  const labels = Object.fromEntries(more.map((text, at) => [`label${at}`, text]));
  for (const text of contents) {
    layers.push(await blob(Buffer.from(text.repeat(5000)), 'application/vnd.oci.image.layer.v1.tar'));
  }
  const config = await blob(Buffer.from(JSON.stringify({
    architecture: 'amd64', os: 'linux',
    config: {
      User: '65532', Env: ['PATH=/usr/bin', 'LAUNCH_TOKEN=hunter2', `STAGES=${contents.length}`, `NOTE=${HOSTILE}`, ...more.map((text, at) => `TEXT${at}=${text}`)],
      Entrypoint: ['/engine'], Labels: labels, Cmd: more,
    },
    rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.digest) },
    history: [
      { created_by: 'apko build --arch amd64', comment: 'system' },
      { created_by: 'ENV LAUNCH=ready', empty_layer: true },
      { created_by: `COPY engine /engine # ${HOSTILE}` },
      ...more.map((text) => ({ created_by: text, comment: text, author: text })),
    ],
  })), 'application/vnd.oci.image.config.v1+json');
  const type = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = JSON.stringify({ schemaVersion: 2, mediaType: type, config, layers, annotations: labels });
  let digest;
  for (const tag of tags) {
    digest = (await send('PUT', `manifests/${tag}`, manifest, type)).headers.get('docker-content-digest');
  }
  await attach(send, blob, digest, manifest.length, more);
  for (let pulls = 0; pulls < 7; pulls += 1) await send('GET', `manifests/${tags[0]}`);
  const matches = [['CVE-2026-7001', 'Critical'], ['CVE-2026-7002', 'High'], ['CVE-2026-7003', 'Low'], ['CVE-2026-7004', 'Medium']].slice(contents.length - 1).map(([id, severity]) => ({
    vulnerability: { id, severity, fix: { versions: ['3.2.2'], state: 'fixed' } }, artifact: { name: 'openssl', version: '3.2.1', type: 'apk' },
  }));
  matches.push(...more.map((text, at) => ({
    vulnerability: { id: `CVE-2026-${2000 + at}`, severity: 'Low', fix: { versions: [text], state: 'fixed' } }, artifact: { name: text, version: text, type: 'apk' },
  })));
  await call('POST', `/scans/v1/repos/${repo}/reports`, {
    digest, scanner: 'SCANNER_NAME_GRYPE', report: Buffer.from(JSON.stringify({ matches })).toString('base64'),
  });
  return digest;
}

/** Attaches an SBOM with some packages. */
async function attach(send, blob, digest, size, more) {
  const document = {
    spdxVersion: 'SPDX-2.3', dataLicense: 'CC0-1.0', SPDXID: 'SPDXRef-DOCUMENT', name: 'engine',
    documentNamespace: 'https://rockets.example/engine', creationInfo: { created: '2026-01-01T00:00:00Z', creators: ['Tool: seed'] },
    packages: ['busybox', 'ca-certificates', 'engine', 'glibc', 'openssl', 'zlib', HOSTILE, ...more].map((name, at) => ({
      name, SPDXID: `SPDXRef-${at}`, versionInfo: `1.${at}.0-r0`, downloadLocation: 'NOASSERTION', licenseConcluded: 'Apache-2.0',
      externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: `pkg:apk/wolfi/package-${at}@1.${at}.0-r0` }],
    })),
  };
  const mediaType = 'application/spdx+json';
  const layer = await blob(Buffer.from(JSON.stringify(document)), mediaType);
  const config = await blob(Buffer.from('{}'), 'application/vnd.oci.empty.v1+json');
  const type = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = JSON.stringify({
    schemaVersion: 2, mediaType: type, artifactType: mediaType, config, layers: [layer], subject: { mediaType: type, digest, size },
  });
  await send('PUT', `manifests/${sha256(Buffer.from(manifest))}`, manifest, type);
}

async function advisories(org) {
  let first;
  for (const [name, alias] of [['openssl', 'CVE-2026-7001'], ['curl', 'CVE-2026-7002'], ['zlib', 'CVE-2026-7003']]) {
    const advisory = (await call('POST', '/vulnerabilities/v1/advisories', {
      parentId: org,
      advisory: { artifactType: 'apk', artifactName: name, artifactArchitecture: 'x86_64', componentName: name, componentType: 'apk', componentLocation: '/usr/lib', aliases: [alias] },
    })).id;
    first ??= advisory;
    await call('POST', `/vulnerabilities/v1/advisories/${advisory}/events`, { advisoryEvent: { fixed: { fixedVersion: '3.2.1-r0', note: HOSTILE } } });
  }
  return first;
}
