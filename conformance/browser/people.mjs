// Runs npm's oidc-provider as an identity provider that people sign in with: its own login page takes any name, which
// becomes the subject; `<name>@example.com` is the verified e-mail, and groups follow the name.
//
//   WALK_MODULES=DIR node people.mjs WORKDIR REDIRECT_URI...
//
// Writes WORKDIR/people.json once it answers, and lives until it is told to stop.
import http from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const [workdir, ...redirects] = process.argv.slice(2);
const modules = process.env.WALK_MODULES;
if (!workdir || redirects.length === 0 || !modules) {
  console.error('usage: WALK_MODULES=DIR people.mjs WORKDIR REDIRECT_URI...');
  process.exit(2);
}
const require = createRequire(path.join(modules, 'package.json'));
const { Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));

const key = { ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: 'people' };
const client = { client_id: 'bowline', client_secret: randomBytes(24).toString('hex'), redirect_uris: redirects };

/** One provider on a port of its own; its address. */
async function serve() {
  const server = http.createServer();
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  const issuer = `http://127.0.0.1:${server.address().port}`;
  server.on('request', new Provider(issuer, configuration).callback());
  return issuer;
}

const configuration = {
  clients: [client],
  jwks: { keys: [key] },
  cookies: { keys: [randomBytes(16).toString('hex')] },
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'given_name', 'family_name'], groups: ['groups'] },
  // Some providers put everything into the id token, others only into userinfo: this one does the first.
  conformIdTokenClaims: false,
  features: { devInteractions: { enabled: true } },
  findAccount: (_ctx, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      email: `${id}@example.com`,
      email_verified: true,
      name: `${id[0].toUpperCase()}${id.slice(1)} Example`,
      groups: id === 'grace' ? ['engineers'] : [],
    }),
  }),
};

// The operator's, and one that an organization has of its own.
const [issuer, otherIssuer] = [await serve(), await serve()];

const file = path.join(workdir, 'people.json');
writeFileSync(`${file}.new`, JSON.stringify({ issuer, otherIssuer, clientId: client.client_id, clientSecret: client.client_secret }), { mode: 0o600 });
renameSync(`${file}.new`, file);
