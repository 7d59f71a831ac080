// Tokens that must not get in, at the exchange and at the API.
import net from 'node:net';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { check, oneOf, same, that } from '../lib/check.mjs';
import { decode, hs256, rs256, unsigned } from '../lib/idp.mjs';
import { refused } from '../lib/status.mjs';
import { absentIn, absentRoot, unique } from '../lib/names.mjs';

export const title = 'Tokens that must not get in';

export async function run(w) {
  const { idp } = w;
  const kid = idp.keys[0].kid;
  const claims = (changes) => idp.claims('walk-owner', w.base, changes);
  const exchange = (token, params = {}) => w.operator.as(token).get('/sts/exchange', { aud: w.base, identity: w.ids.owner, ...params });
  const now = Math.floor(Date.now() / 1000);
  const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;

  // The control: the same claims, signed by the provider, do get in.
  await check('control: a token signed with the provider\'s key gets in', async () => same((await exchange(idp.signed(claims()))).status, 200, 'status'));

  const forged = {
    'alg none': unsigned(claims(), { kid }),
    'alg None': `${Buffer.from(JSON.stringify({ alg: 'None', kid })).toString('base64url')}.${idp.signed(claims()).split('.')[1]}.`,
    'HS256 keyed with the public key (PEM)': hs256(claims(), idp.publicPem(), { kid }),
    'HS256 keyed with the public key (JWK)': hs256(claims(), JSON.stringify(idp.keys[0].n), { kid }),
    'an unknown kid': rs256(claims(), stranger, { kid: 'nobody-has-this' }),
    'another key under the provider\'s kid': rs256(claims(), stranger, { kid }),
    'a key of its own in the header': rs256(claims(), stranger, { kid, jwk: createPublicKey(stranger).export({ format: 'jwk' }) }),
    'a key address of its own in the header': rs256(claims(), stranger, { kid, jku: 'http://127.0.0.1:9/jwks' }),
    'ES256\'s kid with RS256': rs256(claims(), stranger, { kid: idp.keys[1].kid }),
    'a critical header nobody knows': idp.signed(claims(), { crit: ['b64'], b64: false }),
    'claims changed after signing': tampered(idp.signed(claims()), { sub: 'walk-owner', admin: true }),
    'an expiry an hour ago': idp.signed(claims({ iat: now - 7200, exp: now - 3600 })),
    'no expiry': idp.signed(claims({ exp: undefined })),
    'a start in an hour': idp.signed(claims({ nbf: now + 3600 })),
    'no dots': 'garbage',
    'two dots and nothing': '..',
  };
  for (const [name, token] of Object.entries(forged)) {
    await check(`exchange refuses ${name}`, async () => {
      const answer = await exchange(token);
      refused(answer, 401, 16);
      same(answer.json.token, undefined, 'token');
    });
  }

  // Genuine tokens which do not fit: unauthenticated or forbidden, never let in.
  const unfit = {
    'another audience': await idp.token('walk-owner', 'urn:walk:elsewhere'),
    'a longer audience that begins with ours': idp.signed(claims({ aud: `${w.base}.example.com` })),
    'no audience': idp.signed(claims({ aud: undefined })),
    'another subject': await idp.token('walk-unknown'),
    'a subject in other letters': idp.signed(claims({ sub: 'WALK-OWNER' })),
    'a longer subject that begins with ours': idp.signed(claims({ sub: 'walk-owner2' })),
    'no subject': idp.signed(claims({ sub: undefined })),
    'an issuer with a slash more': idp.signed(claims({ iss: `${idp.issuer}/` })),
  };
  for (const [name, token] of Object.entries(unfit)) {
    await check(`exchange refuses ${name}`, async () => {
      const answer = await exchange(token);
      oneOf(answer.status, [401, 403], 'status');
      same(answer.json?.token, undefined, 'token');
    });
  }

  await check('an issuer that nobody trusts is refused and sees no connection', async () => {
    const trap = await listener();
    try {
      const token = rs256(claims({ iss: trap.url }), stranger, { kid: 'x' });
      for (const params of [{}, { identity: undefined }, { identity: absentIn(w.org) }, { identity: absentRoot() }, { identity_provider: absentIn(w.org) }]) {
        const query = { aud: w.base, identity: w.ids.owner, ...params };
        for (const key of Object.keys(query)) if (query[key] === undefined) delete query[key];
        const answer = await w.operator.as(token).get('/sts/exchange', query);
        that(answer.status >= 400 && answer.status < 500, `status ${answer.status} for ${JSON.stringify(params)}`);
      }
      refused(await w.operator.as(token).get('/iam/v1/groups'), 401, 16);
      await new Promise((r) => setTimeout(r, 500));
      same(trap.connections(), 0, 'connections to the untrusted issuer');
    } finally { trap.close(); }
  });

  // Claims beyond issuer and subject.
  const identity = async (claimMatch) => (await w.must(w.operator.post(`/iam/v2/identities/${w.org}`, { name: unique('claims'), claimMatch: { issuer: idp.issuer, subject: 'walk-claims', ...claimMatch } }))).uid;
  const token = await idp.token('walk-claims');

  await check('custom claims that match get in, numbers and booleans as JSON text', async () => {
    const uid = await identity({ claims: { environment: 'production', attempt: '3' }, claimPatterns: { protected: 'true|false' } });
    same((await exchange(token, { identity: uid })).status, 200, 'status');
  });
  await check('a custom claim that differs is forbidden and named', async () => {
    const uid = await identity({ claims: { environment: 'staging' } });
    const answer = await exchange(token, { identity: uid });
    refused(answer, 403, 7);
    same(answer.json.message.includes('invalid "environment"'), true, `message ${JSON.stringify(answer.json.message)} names the claim`);
  });
  await check('a pattern matches the whole claim, not a part', async () => {
    const uid = await identity({ claimPatterns: { environment: 'prod' } });
    refused(await exchange(token, { identity: uid }), 403, 7);
  });
  await check('a claim the token lacks does not match', async () => {
    const uid = await identity({ claims: { absent: 'x' } });
    refused(await exchange(token, { identity: uid }), 403, 7);
  });
  await check('an identity with an audience of its own takes only that', async () => {
    const uid = await identity({ audience: 'https://elsewhere.example.com' });
    oneOf((await exchange(token, { identity: uid })).status, [401, 403], 'status with the default audience');
    same((await exchange(await idp.token('walk-claims', 'urn:walk:elsewhere'), { identity: uid })).status, 200, 'status with its audience');
  });

  await check('a deleted identity is shut out at once', async () => {
    const uid = await identity({});
    await w.bind(w.org, uid, w.roles.viewer);
    const api = w.operator.as((await w.must(exchange(token, { identity: uid }))).token);
    same((await api.get(`/iam/v2/groups/${w.org}`)).status, 200, 'status before');
    same((await w.operator.delete(`/iam/v2/identities/${uid}`)).status, 200, 'status of the delete');
    that([401, 403].includes((await api.get(`/iam/v2/groups/${w.org}`)).status), 'its token still works');
    that((await exchange(token, { identity: uid })).status >= 400, 'the exchange still works');
  });

  // At the API itself.
  const good = await w.login('owner');
  const ours = decode(good);
  const jwks = await (await fetch((await w.nobody.get('/.well-known/openid-configuration')).json.jwks_uri)).json();
  const pem = createPublicKey({ key: jwks.keys.find((k) => k.kid === ours.header.kid), format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  const atApi = {
    'the workload\'s own token': await idp.token('walk-owner'),
    'our claims with alg none': unsigned(ours.claims, { kid: ours.header.kid, typ: 'at+jwt' }),
    'our claims with HS256 and our public key': hs256(ours.claims, pem, { kid: ours.header.kid, typ: 'at+jwt' }),
    'our claims signed by a stranger': rs256(ours.claims, stranger, { kid: ours.header.kid, typ: 'at+jwt' }),
    'our token with other claims': tampered(good, { ...ours.claims, sub: w.ids.stranger }),
    'our token without its signature': good.slice(0, good.lastIndexOf('.') + 1),
    'an empty token': '',
    garbage: 'garbage',
  };
  for (const [name, bad] of Object.entries(atApi)) {
    await check(`the API refuses ${name}`, async () => refused(await w.operator.as(bad).get('/iam/v1/groups'), 401, 16));
  }
  await check('the API refuses a token outside the Bearer scheme', async () => {
    refused(await w.nobody.get('/iam/v1/groups', {}, { authorization: `Basic ${Buffer.from(`_token:${good}`).toString('base64')}` }), 401, 16);
    refused(await w.nobody.get('/iam/v1/groups', { access_token: good }), 401, 16);
  });
}

function tampered(token, claims) {
  const [header, , signature] = token.split('.');
  return [header, Buffer.from(JSON.stringify(claims)).toString('base64url'), signature].join('.');
}

async function listener() {
  let count = 0;
  const server = net.createServer((socket) => { count += 1; socket.destroy(); });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  return { url: `http://127.0.0.1:${server.address().port}`, connections: () => count, close: () => server.close() };
}
