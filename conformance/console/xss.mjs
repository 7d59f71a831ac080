// Texts that would do something if a page did not escape them, in a real browser: no dialog, no report of the content
// security policy, no request elsewhere (each is a complaint, see `browser.mjs`), no element of theirs, and every text can
// be read. `bowline/tests/matrix/console_corpus.rs` writes the same texts into every field of the contract.
import { readFileSync } from 'node:fs';
import { check } from '../lib.mjs';
import { complaints, entered } from './browser.mjs';
import { push } from './seed.mjs';

const { BASE_URL, OPERATOR_TOKEN, CONSOLE_WHOLE } = process.env;
const CORPUS = JSON.parse(readFileSync(new URL('corpus.json', import.meta.url), 'utf8'))
  .map((one) => (typeof one === 'string' ? one : one.text.repeat(one.times)));
/** A sample of the texts, and of the pages that are opened of each kind. */
const TEXTS = CONSOLE_WHOLE ? CORPUS : CORPUS.filter((_, at) => at % 4 === 0);
const MOST = CONSOLE_WHOLE ? 80 : 6;
/** Pages that the texts are on, and what is linked from them. */
const LISTS = ['groups', 'identities', 'roles', 'bindings', 'invites', 'providers', 'repositories', 'findings', 'posture', 'advisories',
  'policies', 'decision', 'subscriptions', 'audit', 'access', 'home', 'upstreams', 'blocked'];

/** Sends a request; whether the server took it. Wrong input must be refused, and nothing else may happen to it. */
async function taken(verb, where, body) {
  const answer = await fetch(BASE_URL + where, {
    method: verb, headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  if (![200, 400, 409].includes(answer.status)) throw new Error(`${verb} ${where} ${JSON.stringify(body)}: ${answer.status} ${text}`);
  return answer.status === 200 && JSON.parse(text);
}

/** Writes a text wherever one can be written; how many fields took it. */
async function write({ org, role, repo }, text, at) {
  const claims = { issuer: 'https://issuer.example', subject: text, claims: { claim: text } };
  const advisory = await taken('POST', '/vulnerabilities/v1/advisories', {
    parentId: org,
    advisory: { artifactType: 'apk', artifactName: text, artifactArchitecture: text, componentName: text, componentType: 'apk', componentLocation: text },
  });
  const made = [
    advisory,
    await taken('POST', `/iam/v2/groups/${org}`, { name: `group ${at}`, description: text }),
    await taken('POST', `/iam/v2/groups/${org}`, { name: text }),
    await taken('POST', `/iam/v2/roles/${org}`, { name: `role ${at}`, description: text, capabilities: ['CAP_REPO_LIST'] }),
    await taken('POST', `/iam/v2/roles/${org}`, { name: text, capabilities: ['CAP_REPO_LIST'] }),
    await taken('POST', `/iam/v2/identities/${org}`, { name: `identity ${at}`, description: text, claimMatch: claims }),
    await taken('POST', `/iam/v2/identities/${org}`, { name: text, claimMatch: { ...claims, subject: `${at}` } }),
    await taken('POST', `/iam/v2/identityProviders/${org}`, {
      name: text, description: text, defaultRole: role, oidc: { issuer: 'https://issuer.example', clientId: text, clientSecret: 'hush', groupsClaim: text },
    }),
    await taken('POST', `/iam/v2/groupInvites/${org}`, { roleUid: role, ttl: '86400s', email: text }),
    await taken('POST', `/registry/v2/repos/${org}`, { name: `repo-${at}`, description: text }),
    await taken('PATCH', `/registrypolicies/v1/repos/${repo}`, { upstream: { url: text } }),
    await taken('POST', `/libraries/v1/policies/${org}`, {
      name: `policy ${at}`, description: text, blockList: [{ purl: `pkg:npm/x${at}`, justification: text }],
    }),
    await taken('POST', `/libraries/v1/policies/${org}`, { name: text }),
    await taken('POST', `/events/v1/subscriptions/${org}`, { sink: `http://127.0.0.1:9/${encodeURI(text.replaceAll('\0', '')).slice(0, 1000)}` }),
    await taken('POST', '/catalog/v1/versions:import', {
      versions: [{ ecosystem: 'PYTHON', name: `text${at}`, version: '1.0', source: 'SOURCE_TYPE_INTERNAL', description: text, license: text }],
    }),
  ];
  if (advisory) made.push(await taken('POST', `/vulnerabilities/v1/advisories/${advisory.id}/events`, { advisoryEvent: { fixed: { fixedVersion: '1', note: text } } }));
  return made.filter(Boolean).length;
}

/** Elements that no page without such texts has, and the text that can be read. */
function look() {
  const foreign = [...document.querySelectorAll('img, iframe, object, embed, style, base, meta[http-equiv], video, audio, template, math, marquee, main script, main link')];
  const odd = [...document.querySelectorAll('*')].filter((one) => [...one.attributes].some(({ name, value }) => name === 'style' || name.startsWith('on')
    || (['href', 'src', 'action'].includes(name) && /^\s*(javascript|vbscript|data:text)/i.test(value))));
  return {
    foreign: [...foreign, ...odd].map((one) => one.outerHTML.slice(0, 200)),
    text: document.body.textContent,
    links: [...document.querySelectorAll('main a')].map((one) => one.getAttribute('href').split('#')[0]),
  };
}

/** What a browser makes of a text: it has no NUL, and reads line ends in one way. */
const plain = (text) => text.replace(/[\r\n\0\ufffd]/g, '').trim().slice(0, 500);

export async function everyText() {
  const org = (await taken('POST', '/iam/v2/groups', { name: 'texts' })).uid;
  const { roles: [role] } = await taken('GET', '/iam/v2/roles?name=viewer');
  const repo = (await taken('POST', `/registry/v2/repos/${org}`, { name: 'engine' })).uid;
  let count = 0;
  for (const [at, text] of TEXTS.entries()) count += await write({ org, repo, role: role.uid }, text, at);
  check(`${TEXTS.length} texts were written into ${count} fields`, count > TEXTS.length * 7, `${count}`);
  for (const half of ['\\ud800', '\\udc00x', 'a\\ud83d']) {
    check(`half a character is refused: ${half}`, await taken('POST', `/iam/v2/groups/${org}`, `{"name":"half ${half}","description":"${half}"}`) === false);
  }
  const image = await push(repo, ['latest'], ['system'], TEXTS.map((text) => text.slice(0, 2000)));
  const page = await entered({ colorScheme: 'light' });
  const queue = [...LISTS.map((name) => `/console/${name}?in=${org}`), '/console/packages', `/console/image?repo=${repo}&digest=${image}`,
    `/console/image-packages?repo=${repo}&digest=${image}`, ...TEXTS.map((text) => `/console/search?q=${encodeURIComponent(text.slice(0, 200))}`)];
  const [seen, opened, unread] = [new Set(), {}, new Set(TEXTS.map(plain))];
  while (queue.length > 0) {
    const where = queue.shift();
    const [name] = where.split('?');
    if (!name.startsWith('/console/') || where.includes('format=') || seen.has(where) || opened[name] >= MOST) continue;
    seen.add(where);
    opened[name] = (opened[name] ?? 0) + 1;
    const answer = await page.goto(BASE_URL + where);
    if (answer.status() >= 500) complaints.push(`${where}: ${answer.status()}`);
    const { foreign, text, links } = await page.evaluate(look);
    complaints.push(...foreign.map((one) => `${where} has ${one}`));
    const read = plain(text) && text.replace(/[\r\n\0\ufffd]/g, '');
    for (const one of [...unread]) if (read.includes(one)) unread.delete(one);
    queue.push(...links);
  }
  check('every text can be read', unread.size === 0, [...unread].join('\n'));
  console.log(`  texts: ${seen.size} pages opened`);
}
