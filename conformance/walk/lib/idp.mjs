// The suites' view of the identity provider: tokens asked for over HTTP, and
// the provider's key for signing tokens that it would never issue itself.
import { readFileSync } from 'node:fs';
import { createHmac, createPrivateKey, createPublicKey, randomUUID, sign } from 'node:crypto';

export class IdentityProvider {
  constructor(file) {
    const { issuer, clients, keys } = JSON.parse(readFileSync(file, 'utf8'));
    this.issuer = issuer;
    this.clients = clients;
    this.keys = keys;
  }

  // A token by client_credentials; the resource decides its audience.
  async token(client, resource) {
    const secret = this.clients[client];
    const answer = await fetch(`${this.issuer}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${client}:${secret}`).toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'api', ...(resource && { resource }) }),
    });
    const body = await answer.json();
    if (!answer.ok) throw new Error(`the identity provider refused ${client}: ${JSON.stringify(body)}`);
    return body.access_token;
  }

  // The claims that the provider would put into a token of this client.
  claims(client, audience, changes = {}) {
    const now = Math.floor(Date.now() / 1000);
    return {
      iss: this.issuer, sub: client, aud: audience, iat: now, exp: now + 600,
      jti: randomUUID(), client_id: client, ...changes,
    };
  }

  // Signs with the provider's own RSA key.
  signed(claims, header = {}) {
    const key = createPrivateKey({ key: this.keys[0], format: 'jwk' });
    return rs256(claims, key, { kid: this.keys[0].kid, ...header });
  }

  publicPem() {
    return createPublicKey({ key: this.keys[0], format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  }
}

const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

export function rs256(claims, key, header) {
  const text = `${part({ alg: 'RS256', typ: 'JWT', ...header })}.${part(claims)}`;
  return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`;
}

export function hs256(claims, secret, header) {
  const text = `${part({ alg: 'HS256', typ: 'JWT', ...header })}.${part(claims)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

export function unsigned(claims, header) {
  return `${part({ alg: 'none', typ: 'JWT', ...header })}.${part(claims)}.`;
}

export function decode(token) {
  const [header, claims] = token.split('.');
  const read = (text) => JSON.parse(Buffer.from(text, 'base64url').toString());
  return { header: read(header), claims: read(claims) };
}
