// bowline-credential-provider, driven with the kubelet's own types (`k8s.io/kubelet`).
//
//   BASE_URL, OPERATOR_TOKEN, PROVIDER   the server, and the identity provider that stands in for the cluster's issuer
//   BOWLINE                              its binary
//   KUBELET                              the driver, built from main.go
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check, checks, owned } from '../lib.mjs';
import { IdentityProvider } from '../walk/lib/idp.mjs';

const { BASE_URL, BOWLINE, KUBELET, PROVIDER } = process.env;
const work = mkdtempSync(join(tmpdir(), 'kubelet.'));
const env = { HOME: work, PATH: process.env.PATH };
const run = (command, ...args) => spawnSync(command, args, { env, cwd: work, encoding: 'utf8', timeout: 60_000 });
const cluster = new IdentityProvider(PROVIDER);
/** What the cluster's issuer signs for a service account. */
const tokenOf = (subject) => cluster.signed(cluster.claims('walk-kubelet', BASE_URL, { sub: subject }));

const { identity, upstream } = await owned('kubelet', 'walk-kubelet');
const login = run(BOWLINE, 'auth', 'login', '--identity', identity, '--identity-token', upstream, '--api', BASE_URL);
check('the owner signs in', login.status === 0, login.stderr);
const registry = new URL(BASE_URL).host;
const files = join(work, 'files');
const created = run(BOWLINE, 'iam', 'identities', 'create', 'kubernetes', 'kubelet/puller', '--cluster-issuer', cluster.issuer,
  '--namespace', 'prod', '--service-account', 'web', '--kubelet', files, '--registry', registry);
check('an identity of the service account is created, with its files', created.status === 0, created.stderr);
const puller = created.stdout.trim();

const plugins = join(work, 'plugins');
mkdirSync(plugins);
symlinkSync(BOWLINE, join(plugins, 'bowline-credential-provider'));
const config = join(files, 'credential-provider.yaml');
const provide = (subject) => run(KUBELET, config, plugins, `${registry}/kubelet/app:1`, tokenOf(subject), puller);
const given = provide('system:serviceaccount:prod:web');
check('the kubelet reads the configuration and the credentials', given.status === 0, given.stderr);
const credentials = JSON.parse(given.stdout);
check('they are those of the registry', credentials.registry === registry && credentials.username === '_token', given.stdout);
const basic = Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64');
const answer = await fetch(`${BASE_URL}/v2/`, { headers: { authorization: `Basic ${basic}` } });
check('and the registry takes them', answer.status === 200, `${answer.status}`);
const other = provide('system:serviceaccount:prod:other');
check('another service account gets none', other.status !== 0 && other.stderr.includes('error: '), other.stderr);

rmSync(work, { recursive: true });
console.log(`kubelet: ${checks()} checks passed`);
