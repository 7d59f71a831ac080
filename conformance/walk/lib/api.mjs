// Plain HTTP against the server, with no knowledge of it but the base URL.
// Every answer passes the rules which hold for all of them (see `rules`);
// the suite `everywhere` reports what was broken on the way.
import { isUidp } from './names.mjs';

export const offences = [];
export const seen = { answers: 0, errors: 0 };
let last = '';
export const lastExchange = () => last;

export class Api {
  constructor(base, token, headers = {}) {
    this.base = base;
    this.token = token;
    this.headers = headers;
  }

  as(token) { return new Api(this.base, token, this.headers); }
  anonymous() { return new Api(this.base, undefined, this.headers); }

  get(path, query, headers) { return this.call('GET', path, { query, headers }); }
  delete(path) { return this.call('DELETE', path); }
  post(path, body, query) { return this.call('POST', path, { body, query }); }
  put(path, body) { return this.call('PUT', path, { body }); }
  patch(path, body, query) { return this.call('PATCH', path, { body, query }); }
  form(path, fields) { return this.call('POST', path, { form: fields }); }

  async call(method, path, { query, body, form, raw, headers = {} } = {}) {
    const url = new URL(this.base + path);
    for (const [key, value] of pairs(query)) url.searchParams.append(key, value);
    const sent = { ...this.headers, ...headers };
    if (this.token !== undefined) sent.authorization ??= `Bearer ${this.token}`;
    let payload;
    if (form) payload = new URLSearchParams(pairs(form));
    else if (raw !== undefined) { payload = raw; sent['content-type'] ??= 'application/json'; }
    else if (body !== undefined) { payload = JSON.stringify(body); sent['content-type'] = 'application/json'; }

    const answer = await fetch(url, { method, headers: sent, body: payload, redirect: 'manual', signal: AbortSignal.timeout(30_000) });
    const text = await answer.text();
    const result = { method, path, status: answer.status, headers: answer.headers, text, json: parse(text) };
    const shown = text.length > 600 ? `${text.slice(0, 600)}…` : text;
    last = `${method} ${url.pathname}${url.search} -> ${answer.status} ${shown}`.replaceAll(/\s+/g, ' ').replaceAll(/eyJ[\w.-]+/g, '<jwt>');
    rules(result);
    return result;
  }
}

const pairs = (value) => Object.entries(value ?? {}).flatMap(([key, v]) => (Array.isArray(v) ? v.map((x) => [key, x]) : [[key, String(v)]]));

function parse(text) {
  try { return JSON.parse(text); } catch { return undefined; }
}

// ---- rules for every answer -------------------------------------------------

const statusOf = { 1: 499, 2: 500, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 12: 501, 13: 500, 14: 503, 15: 500, 16: 401 };

function offence(answer, text) {
  offences.push({ rule: text, where: `${answer.method} ${answer.path} -> ${answer.status}` });
}

function rules(answer) {
  seen.answers += 1;
  for (const name of ['deprecation', 'sunset']) if (answer.headers.has(name)) offence(answer, 'no deprecation or sunset header');
  if (answer.text !== '') {
    if (answer.json === undefined) offence(answer, 'a body is JSON');
    if (!(answer.headers.get('content-type') ?? '').startsWith('application/json')) offence(answer, 'a body is declared as application/json');
  }
  if (answer.status >= 500 && answer.status !== 501) offence(answer, 'no internal error');
  if (answer.status >= 400) errorRules(answer);
  else if (/^\/(iam|registry)\/v2(beta1)?\//.test(answer.path)) nameRules(answer, answer.json, '');
}

function errorRules(answer) {
  seen.errors += 1;
  const body = answer.json;
  if (!body || typeof body !== 'object') return offence(answer, 'an error has a body');
  const members = Object.keys(body).sort().join();
  if (members !== 'code,details,message') offence(answer, `an error is a bare google.rpc.Status (members are ${members})`);
  if (!Number.isInteger(body.code) || !Array.isArray(body.details) || typeof body.message !== 'string') offence(answer, 'code is a number, message a string, details an array');
  if (answer.status !== 405 && statusOf[body.code] !== answer.status) offence(answer, `the HTTP status follows the code (code ${body.code})`);
  const types = (body.details ?? []).map((d) => d['@type']);
  for (const type of types) if (!String(type).startsWith('type.googleapis.com/')) offence(answer, `details name their type (${type})`);
}

// v2: camelCase, `uid` and never `id`, `createTime`/`updateTime` and never the v1 names.
const pagingTwins = new Set(['.next_page_token', '.total_count']);
const opaqueMaps = new Set(['claims', 'claimPatterns', 'resourceLimits', 'environment', 'annotations', 'serviceBindings', 'clientIds', 'appInstallations']);

function nameRules(answer, value, at) {
  if (Array.isArray(value)) return value.forEach((v) => nameRules(answer, v, at));
  if (!value || typeof value !== 'object') return;
  for (const [key, inner] of Object.entries(value)) {
    const here = `${at}.${key}`;
    if (!/^[a-z][a-zA-Z0-9]*$/.test(key) && key !== 'sync_config' && !pagingTwins.has(here)) offence(answer, `v2 members are camelCase (${here})`);
    if (['id', 'createdAt', 'created_at', 'updatedAt', 'updated_at'].includes(key)) offence(answer, `v2 never says ${key} (${here})`);
    if (key === 'uid' && inner !== '' && !isUidp(inner)) offence(answer, `a uid is a UIDP (${here} = ${inner})`);
    if (/^(create|update)Time$/.test(key) && inner !== null && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(inner)) offence(answer, `timestamps are RFC 3339 in UTC (${here} = ${inner})`);
    if (!opaqueMaps.has(key)) nameRules(answer, inner, here);
  }
}
