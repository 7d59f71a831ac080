// Runs npm's oidc-provider as the identity provider of the suites.
//
//   node provider.mjs WORKDIR AUDIENCE_URL
//
// The provider listens on a free loopback port and writes WORKDIR/provider.json
// (issuer, the clients with their secrets, the private signing key) once it
// answers. It lives until it is told to stop.
import http from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const [workdir, base] = process.argv.slice(2);
const modules = process.env.WALK_MODULES;
if (!workdir || !base || !modules) {
  console.error('usage: WALK_MODULES=DIR provider.mjs WORKDIR AUDIENCE_URL');
  process.exit(2);
}
const require = createRequire(path.join(modules, 'package.json'));
const { Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));

// One signing key per algorithm that identity providers use in practice.
const jwk = (type, options, extra) => ({
  ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }),
  use: 'sig',
  ...extra,
});
const keys = [
  jwk('rsa', { modulusLength: 2048 }, { alg: 'RS256', kid: 'walk-rs256' }),
  jwk('ec', { namedCurve: 'P-256' }, { alg: 'ES256', kid: 'walk-es256' }),
];

// Every client stands for one workload: its id becomes the token's subject.
const clients = ['owner', 'viewer', 'unbound', 'stranger', 'twin', 'claims', 'unknown', 'sdk', 'oci', 'clients', 'gate', 'feeds-formats', 'feeds-formats-copy', 'packages', 'packages-stranger', 'packages-outside', 'javascript', 'javascript-stranger', 'javascript-outside', 'java', 'java-stranger', 'java-outside', 'go-modules', 'go-outside', 'cargo', 'cargo-publisher', 'cargo-outside', 'cargo-aged', 'trusted', 'trusted-elsewhere', 'mcp', 'kubelet', 'terraform'].map((name) => ({
  client_id: `walk-${name}`,
  client_secret: randomBytes(24).toString('hex'),
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
}));

// A resource indicator chooses the audience of the token, and its algorithm.
const host = new URL(base).host;
const resources = {
  [base]: { audience: base },
  'urn:walk:host': { audience: host },
  'urn:walk:hostname': { audience: new URL(base).hostname },
  'urn:walk:es256': { audience: base, alg: 'ES256' },
  'urn:walk:elsewhere': { audience: 'https://elsewhere.example.com' },
};

const server = http.createServer();
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients,
  jwks: { keys },
  cookies: { keys: [randomBytes(16).toString('hex')] },
  ttl: { ClientCredentials: 3600 },
  // A custom claim, as CI systems add them.
  extraTokenClaims: () => ({ environment: 'production', attempt: 3, protected: true }),
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => base,
      useGrantedResource: () => true,
      getResourceServerInfo: (_ctx, name) => ({
        scope: 'api',
        audience: resources[name].audience,
        accessTokenFormat: 'jwt',
        accessTokenTTL: 3600,
        jwt: { sign: { alg: resources[name].alg ?? 'RS256' } },
      }),
    },
  },
});
server.on('request', provider.callback());

const file = path.join(workdir, 'provider.json');
const facts = {
  issuer,
  clients: Object.fromEntries(clients.map((c) => [c.client_id, c.client_secret])),
  keys,
};
writeFileSync(`${file}.new`, JSON.stringify(facts), { mode: 0o600 });
renameSync(`${file}.new`, file);
console.log(`identity provider at ${issuer}`);
process.on('SIGTERM', () => process.exit(0));
