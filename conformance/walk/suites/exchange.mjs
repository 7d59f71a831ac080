// 4.4 and 5: a workload's token becomes an API token, three ways.
import { createPublicKey, verify } from 'node:crypto';
import { check, has, matches, oneOf, same, that } from '../lib/check.mjs';
import { field, fields, text, unary } from '../lib/grpc.mjs';
import { decode } from '../lib/idp.mjs';
import { refused } from '../lib/status.mjs';
import { Api } from '../lib/api.mjs';

export const title = 'Token exchange';

export async function run(w) {
  const upstream = await w.idp.token('walk-owner');
  const sts = new Api(w.base, upstream);
  const params = { aud: w.base, identity: w.ids.owner };
  const group = `/iam/v2/groups/${w.org}`;
  const works = async (token) => same((await w.operator.as(token).get(group)).status, 200, 'status of a call with the token');

  await check('GET /sts/exchange answers with a token', async () => {
    const answer = await sts.get('/sts/exchange', params);
    same(answer.status, 200, 'status');
    for (const key of Object.keys(answer.json)) oneOf(key, ['token', 'refreshToken', 'expiry'], 'a member of the answer');
    await works(answer.json.token);
  });

  await check('POST /sts/exchange takes the same as a form', async () => {
    const answer = await sts.form('/sts/exchange', params);
    same(answer.status, 200, 'status');
    await works(answer.json.token);
  });

  await check('POST /sts/exchange takes the same in the query', async () => {
    const answer = await sts.call('POST', '/sts/exchange', { query: params });
    same(answer.status, 200, 'status');
    await works(answer.json.token);
  });

  await check('gRPC SecurityTokenService/Exchange takes the same', async () => {
    const message = Buffer.concat([field(1, w.base), field(4, w.ids.owner)]);
    const answer = await unary(w.base, 'chainguard.platform.oidc.SecurityTokenService/Exchange', message, upstream);
    same([answer.http, answer.code, answer.message], [200, 0, ''], 'HTTP status, gRPC code, message');
    const found = fields(answer.bytes);
    await works(text(found, 1));
    const seconds = Number(fields(found[3][0])[1][0]);
    same(seconds, decode(text(found, 1)).claims.exp, 'expiry');
  });

  const raw = (await sts.get('/sts/exchange', params)).json ?? {};
  const { header, claims } = decode(raw.token);

  await check('the token lives one hour and says so', () => {
    same(claims.exp - claims.iat, 3600, 'exp - iat');
    same(Math.floor(Date.parse(raw.expiry) / 1000), claims.exp, 'expiry');
    that(Math.abs(claims.iat - Date.now() / 1000) < 30, 'iat is not now');
  });

  await check('its issuer is the authentication host, its audience the API base address, its subject the identity', () =>
    has({ ...claims, aud: [claims.aud].flat() }, { iss: w.base, aud: [w.base], sub: w.ids.owner }, 'claims'));

  await check('act tells whom it stands for', () => has(claims.act, { iss: w.idp.issuer, sub: 'walk-owner' }, 'act'));

  await check('cap tells the capabilities per group as a bit set', () => {
    matches(claims.cap?.[w.org], /^[\w-]+=*$/, `cap[${w.org}]`);
    const bytes = Buffer.from(claims.cap[w.org], 'base64url');
    const bit = (i) => (bytes.readBigUInt64BE(8 + 8 * Math.floor(i / 64)) >> BigInt(i % 64)) & 1n;
    same([bit(1), bit(2), bit(3)], [1n, 1n, 1n], 'groups.create, groups.update, groups.list');
  });

  await check('discovery and JWKS verify its signature', async () => {
    const discovery = await w.nobody.get('/.well-known/openid-configuration');
    same(discovery.json.issuer, w.base, 'issuer');
    const { keys } = await (await fetch(discovery.json.jwks_uri)).json();
    const key = keys.find((k) => k.kid === header.kid);
    that(key, `no key ${header.kid} in the JWKS`);
    oneOf(header.alg, discovery.json.id_token_signing_alg_values_supported, 'alg');
    oneOf(key.alg, [undefined, header.alg], 'alg of the key');
    const [h, c, s] = raw.token.split('.');
    that(verify('sha256', Buffer.from(`${h}.${c}`), { key: createPublicKey({ key, format: 'jwk' }), dsaEncoding: 'ieee-p1363' }, Buffer.from(s, 'base64url')), 'the signature does not verify');
    that(keys.every((k) => !k.d && !k.p && !k.k), 'the JWKS holds private material');
  });

  await check('the class of the token stands in its header', () => same(header.typ, 'at+jwt', 'typ'));

  await check('GET /auth/v1/ok tells who the token is', async () => {
    const answer = await w.operator.as(raw.token).get('/auth/v1/ok');
    same(answer.status, 200, 'status');
    has(answer.json, { issuer: w.base, subject: w.ids.owner, audience: [w.base] });
    same(Math.floor(Date.parse(answer.json.expiry) / 1000), claims.exp, 'expiry');
    that(answer.json.capabilities.some((c) => c.group?.id === w.org && c.role?.name === 'owner'), `no owner of ${w.org} among the capabilities`);
  });

  await check('without an identity the one exact claim match of the organization is found', async () => {
    const answer = await sts.get('/sts/exchange', { aud: w.base, scopes: w.org });
    same(answer.status, 200, 'status');
    same(decode(answer.json.token).claims.sub, w.ids.owner, 'sub');
    for (const [scopes, uid] of [[w.org, w.ids.twin], [w.elsewhere, w.ids.twin2]]) {
      const twin = await w.operator.as(await w.idp.token('walk-twin')).get('/sts/exchange', { aud: w.base, scopes });
      same(twin.status, 200, 'status of a subject of two organizations');
      same(decode(twin.json.token).claims.sub, uid, 'sub of a subject of two organizations');
    }
  });

  await check('without an identity, an unknown subject and no organization answer alike', async () => {
    const none = await w.operator.as(await w.idp.token('walk-unknown')).get('/sts/exchange', { aud: w.base, scopes: w.org });
    for (const name of ['walk-owner', 'walk-twin']) {
      const answer = await w.operator.as(await w.idp.token(name)).get('/sts/exchange', { aud: w.base });
      that(answer.status >= 400 && answer.status < 500, `status ${answer.status}`);
      same([none.status, none.text], [answer.status, answer.text], 'answer for an unknown subject');
      matches(answer.json.message, /no identity found/, 'message');
    }
  });

  await check('a named identity settles which of several is meant', async () => {
    const answer = await w.operator.as(await w.idp.token('walk-twin')).get('/sts/exchange', { aud: w.base, identity: w.ids.twin2 });
    same(answer.status, 200, 'status');
    same(decode(answer.json.token).claims.sub, w.ids.twin2, 'sub');
  });

  for (const [audience, resource] of [['the host and port', 'urn:walk:host'], ['the host', 'urn:walk:hostname']]) {
    await check(`a workload token for ${audience} of the server is accepted`, async () =>
      same((await w.operator.as(await w.idp.token('walk-owner', resource)).get('/sts/exchange', params)).status, 200, 'status'));
  }

  await check('a workload token signed with ES256 is accepted', async () =>
    same((await w.operator.as(await w.idp.token('walk-owner', 'urn:walk:es256')).get('/sts/exchange', params)).status, 200, 'status'));

  await check('without an audience the exchange says so', async () => {
    const answer = await sts.get('/sts/exchange', { identity: w.ids.owner });
    refused(answer, 400, 3);
    matches(answer.json.message, /Audience must be specified/, 'message');
  });

  await check('a JSON body is not read', async () => {
    const answer = await sts.post('/sts/exchange', params);
    refused(answer, 400, 3);
    matches(answer.json.message, /Audience must be specified/, 'message');
  });

  await check('an audience that is nobody\'s is refused', async () => {
    const answer = await sts.get('/sts/exchange', { ...params, aud: 'https://elsewhere.example.com' });
    that(answer.status >= 400 && answer.status < 500, `status ${answer.status}`);
    same(answer.json?.token, undefined, 'token');
  });

  await check('without a workload token the exchange is refused', async () => refused(await w.nobody.get('/sts/exchange', params), 401, 16));

  await check('a token for the registry host is not a token for the API', async () => {
    const host = new URL(w.base).host;
    const answer = await sts.get('/sts/exchange', { ...params, aud: host });
    same(answer.status, 200, 'status');
    same([decode(answer.json.token).claims.aud].flat(), [host], 'aud');
    refused(await w.operator.as(answer.json.token).get(group), 401, 16);
  });

  await check('cap narrows the token', async () => {
    const narrow = w.operator.as(await w.login('owner', { cap: ['groups.list'] }));
    same((await narrow.get(group)).status, 200, 'status of a read');
    refused(await narrow.post(`/iam/v2/groups/${w.org}`, { name: 'narrowed' }), 403, 7);
  });

  await check('scopes narrows the token to a group', async () => {
    const [inside, outside] = [await w.group(w.org, 'inside'), await w.group(w.org, 'outside')];
    const narrow = w.operator.as(await w.login('owner', { scopes: [inside] }));
    same((await narrow.get(`/iam/v2/groups/${inside}`)).status, 200, 'status inside');
    refused(await narrow.get(`/iam/v2/groups/${outside}`), 403, 7);
  });

  await check('an unknown capability is refused', async () => refused(await sts.get('/sts/exchange', { ...params, cap: 'groups.levitate' }), 400, 3));
  await check('an identity that is not a UIDP is refused', async () => refused(await sts.get('/sts/exchange', { ...params, identity: 'not-a-uidp' }), 400, 3));
}
