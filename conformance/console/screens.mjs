// Every screen of the console in four states and two color schemes: it fits the widths, also those of
// a window at two and four times the size, axe-core finds nothing, what is chosen is marked with forced colors, and contact
// sheets show all of them at a glance.
//
// States: `full` has something in every part, `empty` has nothing or nothing that matches, `error` is a mistake in the
// address, and `refused` is what a person sees at the address of `full` who may only pull images of one group.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { check } from '../lib.mjs';
import { AXE, browser, complaints, context, entered } from './browser.mjs';
import { bind, signedIn } from './people.mjs';

const { BASE_URL, SCREENSHOTS, CONSOLE_WHOLE } = process.env;
const STATES = ['full', 'empty', 'error', 'refused'];
const SCHEMES = ['light', 'dark'];
/** 320 pixels are 1280 at four times the size, 640 at twice. */
const WIDTHS = CONSOLE_WHOLE ? [320, 400, 640, 840, 1152, 1280, 1920] : [320, 840, 1280];
/** Of a sample no one looks at pictures. */
const PHOTOGRAPHED = CONSOLE_WHOLE ? [400, 1280, 1920] : [];
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
/** A sample looks at one of so many screens that are full and light, and of others. */
const [FULL, OTHERS] = [2, 14];

const at = (page, query) => `/console/${page}?${new URLSearchParams(query)}`;

/** The screens by their page, each with the addresses of its states. */
function screens(world) {
  const { org, empty, hollow, group, repo, image, older, tag, advisory, artifact, subscription, identity, role, provider } = world;
  const none = 'no such thing';
  /** A list of what is in a group. */
  const list = (page, filter) => ({
    full: at(page, { in: org }), empty: at(page, { in: empty, ...filter }), error: at(page, { in: 'x' }),
  });
  /** What is about one resource. */
  const one = (page, name, full, bare) => ({
    full: at(page, { [name]: full }), empty: at(page, { [name]: bare }), error: at(page, { [name]: 'x' }),
  });
  /** A page without parameters of its own. */
  const alone = (page, query = {}) => ({
    full: `/console/${page}`, empty: at(page, query), error: at(page, { format: 'x' }),
  });
  /** A page with what was typed on others. */
  const typed = (page, fields) => ({
    full: at(page, { in: org, ...fields }), empty: at(page, { in: empty }), error: at(page, { in: org, ...fields, format: 'x' }),
  });
  /** A step of the wizard for workloads. */
  const step = (name, more = {}) =>
    typed(`identities/new/${name}`, { platform: 'github', repo: 'rockets/engine', jobs: 'branch', ref: 'main', name: 'build', ...more });
  return {
    '': alone(''),
    access: list('access'),
    advisories: list('advisories', { q: none }),
    advisory: one('advisory', 'uid', advisory, hollow.advisory),
    audit: list('audit', { kind: none }),
    'audit-entry': {
      full: at('audit-entry', { organization: org, sequence: '1' }), empty: at('audit-entry', { organization: org, sequence: '2' }),
      error: at('audit-entry', { organization: org, sequence: 'x' }),
    },
    'audit-verify': {
      full: at('audit-verify', { in: org, run: '1' }), empty: at('audit-verify', { in: empty }), error: at('audit-verify', { in: 'x', run: '1' }),
    },
    bindings: list('bindings'),
    blocked: list('blocked', { name: none }),
    compare: {
      full: at('compare', { repo, from: older, to: image }), empty: at('compare', { repo }), error: at('compare', { repo, from: 'x', to: 'y' }),
    },
    decision: {
      full: at('decision', { in: org, purl: 'pkg:npm/event-stream@3.3.6' }), empty: at('decision', { in: empty }), error: at('decision', { in: org, purl: 'x' }),
    },
    deliveries: one('deliveries', 'uid', subscription, hollow.subscription),
    delivery: {
      full: at('delivery', { uid: subscription, number: '1' }), empty: at('delivery', { uid: subscription, number: '9999' }),
      error: at('delivery', { uid: subscription, number: 'x' }),
    },
    exceptions: list('exceptions'),
    find: {
      full: at('find', { in: org, package: 'pkg:apk/wolfi/package-4' }), empty: at('find', { in: empty, license: none }),
      error: at('find', { in: org, package: 'x' }),
    },
    findings: list('findings', { q: none }),
    'first-run': alone('first-run'),
    'first-run/person': typed('first-run/person', {}),
    'first-run/provider': typed('first-run/provider', {}),
    'first-run/save': typed('first-run/save', { name: 'company', issuer: 'https://issuer.example', client: 'bowline' }),
    'first-run/test': typed('first-run/test', { name: 'company', issuer: 'https://issuer.example', client: 'bowline' }),
    group: one('group', 'uid', org, hollow.group),
    groups: list('groups', { name: none }),
    history: one('history', 'resource', group, `${empty}/00000000000000ff`),
    help: { full: at('help', { reason: 'PERMISSION_DENIED' }), empty: '/console/help', error: at('help', { reason: 'x' }) },
    home: list('home'),
    identities: list('identities', { name: none }),
    'identities/new': typed('identities/new', {}),
    'identities/new/facts': step('facts'),
    'identities/new/claims': step('claims'),
    'identities/new/role': step('role'),
    'identities/new/create': step('create'),
    'identities/new/bind': step('bind', { identity, role }),
    'identities/new/connect': step('connect', { identity }),
    identity: one('identity', 'uid', identity, hollow.identity),
    image: {
      full: at('image', { repo, digest: image }), empty: at('image', { repo, digest: world.bare }), error: at('image', { repo, digest: 'x' }),
    },
    'image-packages': {
      full: at('image-packages', { repo, digest: image }), empty: at('image-packages', { repo, digest: image, q: none }),
      error: at('image-packages', { repo, digest: 'x' }),
    },
    'image-policies': list('image-policies'),
    'image-verdicts': list('image-verdicts'),
    invites: list('invites'),
    licenses: list('licenses'),
    matches: list('matches', { vulnerability: none }),
    me: alone('me'),
    method: {
      full: at('method', { name: 'chainguard.platform.iam.v2.GroupsService.GetGroup', send: 'true', 'f.uid': org }),
      empty: at('method', { name: 'chainguard.platform.iam.v2.IdentitiesService.CreateIdentity' }),
      error: at('method', { name: 'chainguard.platform.iam.v2.GroupsService.GetGroup', send: 'true', 'f.uid': 'x' }),
    },
    methods: alone('methods', { q: none }),
    operator: alone('operator'),
    organizations: alone('organizations'),
    package: { full: at('package', { id: artifact }), empty: at('package', { id: 'python:nothing' }), error: at('package', { id: 'x' }) },
    packages: alone('packages', { q: none }),
    policies: list('policies', { name: none }),
    policy: one('policy', 'repo', repo, hollow.repo),
    posture: list('posture'),
    provider: one('provider', 'uid', provider, hollow.provider),
    providers: list('providers'),
    repositories: list('repositories', { q: none }),
    repository: one('repository', 'uid', repo, hollow.repo),
    role: one('role', 'uid', role, hollow.role),
    roles: list('roles', { name: none }),
    search: { full: at('search', { q: 'engine' }), empty: at('search', { q: none }), error: at('search', { q: 'engine', in: 'x' }) },
    subscriptions: list('subscriptions'),
    'tag-history': one('tag-history', 'tag', tag, hollow.tag),
    tags: one('tags', 'repo', repo, hollow.repo),
    'unindexed-sboms': list('unindexed-sboms'),
    upstreams: list('upstreams', { failed: 'true' }),
    why: {
      full: at('why', { identity, capabilities: 'repo.create,repo.delete', scope: group }), empty: '/console/why',
      error: at('why', { capabilities: none, scope: group }),
    },
  };
}

/** Screens that are more than a state of a page. */
function others({ org, group, empty }) {
  return {
    'home-of-group': { full: at('home', { in: group }) },
    'home-none': { full: '/console/home' },
    'access-none': { full: '/console/access' },
    'form-of-a-group': { full: at('method', { name: 'chainguard.platform.iam.v2.GroupsService.UpdateGroup', edit: '1', 'f.group.uid': org }) },
    'form-of-a-deletion': { full: at('method', { name: 'chainguard.platform.iam.v2.GroupsService.DeleteGroup', 'f.uid': empty }) },
    missing: { full: '/console/no-such-page' },
  };
}

/** The pages of the server, of which none may be left out. */
function pages() {
  const here = path.dirname(fileURLToPath(import.meta.url));
  const text = readFileSync(path.join(here, '../../crates/console/src/pages/mod.rs'), 'utf8');
  return [...text.matchAll(/page!\("\/console\/([^"]*)"/g)].map((match) => match[1]);
}

async function fits(page, name) {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    const content = await page.evaluate(() => document.documentElement.scrollWidth);
    if (content > width) complaints.push(`${name} does not fit ${width} pixels: it is ${content} wide`);
    if (PHOTOGRAPHED.includes(width)) await page.screenshot({ path: path.join(SCREENSHOTS, `${name}-${width}.png`), fullPage: width !== 1280 });
  }
}

/** Runs axe-core, whose text only this evaluation brings into the page. */
async function accessible(page, name, widths) {
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    for (const details of await page.$$('main details')) await details.evaluate((one) => { one.open = true; });
    await page.evaluate(AXE);
    const found = await page.evaluate((tags) => globalThis.axe.run({ runOnly: tags }), RULES);
    const told = found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`).join('\n    ')}`);
    complaints.push(...told.map((one) => `${name} at ${width} pixels: ${one}`));
  }
}

/** With the colors of the system, what is chosen is marked by more than its color. */
async function inForcedColors(page, name) {
  await page.emulateMedia({ forcedColors: 'active' });
  await page.setViewportSize({ width: 1280, height: 900 });
  const unmarked = await page.evaluate(() => [...document.querySelectorAll('.rail [aria-current], button, .button')]
    .filter((one) => one.checkVisibility() && getComputedStyle(one).borderStyle === 'none').map((one) => one.textContent.trim()));
  if (unmarked.length > 0) complaints.push(`${name} with forced colors: no border around ${unmarked.join(', ')}`);
  await page.emulateMedia({ forcedColors: 'none' });
}

/** Whether a run looks at this screen: the whole does at all of them. */
function isLookedAt(number, state, scheme) {
  const turn = number + STATES.indexOf(state) * 3 + SCHEMES.indexOf(scheme) * 5;
  return Boolean(CONSOLE_WHOLE) || turn % (state === 'full' && scheme === 'light' ? FULL : OTHERS) === 0;
}

async function one(page, name, where, state) {
  const before = complaints.length;
  const answer = await page.goto(BASE_URL + where);
  const heading = await page.textContent('h1');
  if (answer.status() >= 500) complaints.push(`${name}: ${answer.status()}`);
  if (state === 'error' && await page.$$eval('main [role=alert]', (found) => found.length) === 0) complaints.push(`${name}: the mistake is not named on ${heading}`);
  await fits(page, name);
  await accessible(page, name, CONSOLE_WHOLE ? [400, 1280] : [1280]);
  if (CONSOLE_WHOLE && state === 'full') await inForcedColors(page, name);
  if (complaints.length > before) console.log(`  BAD  ${name}`);
  return complaints.length === before;
}

export async function everyScreen(world, people) {
  const all = { ...screens(world), ...others(world) };
  const missing = pages().filter((page) => !STATES.slice(0, 3).every((state) => all[page]?.[state]));
  check('every page is among the screens', missing.length === 0, `screens.mjs lacks ${missing.join(', ')}`);
  for (const scheme of SCHEMES) {
    const operator = await entered({ colorScheme: scheme });
    const narrow = await signedIn(people, 'nora', { colorScheme: scheme });
    if (scheme === SCHEMES[0]) await bind(narrow.uid, 'registry.pull', world.group);
    let [good, looked] = [0, 0];
    for (const [number, [page, addresses]] of Object.entries(all).entries()) {
      for (const state of STATES) {
        const where = state === 'refused' ? addresses.full : addresses[state];
        if (!where || !isLookedAt(number, state, scheme)) continue;
        const reader = state === 'refused' ? narrow.page : operator;
        looked += 1;
        good += await one(reader, `${page.replaceAll('/', '-') || 'start'}-${state}-${scheme}`, where, state);
      }
    }
    console.log(`  ${good === looked ? 'ok  ' : 'BAD '} ${good} of ${looked} screens, ${scheme}`);
    await outside(scheme, operator);
  }
  if (CONSOLE_WHOLE) await contactSheets();
}

/** Before signing in, and after signing out. */
async function outside(scheme, page) {
  const stranger = await (await context({ colorScheme: scheme })).newPage();
  await one(stranger, `sign-in-full-${scheme}`, '/console/groups', 'full');
  await page.goto(`${BASE_URL}/console/`);
  await page.click('button:has-text("Sign out")');
  check(`signing out leads to sign-in, ${scheme}`, page.url().endsWith('/console/sign-in?notice=out'), page.url());
  await page.goto(`${BASE_URL}/console/me`);
  check(`and the session is over, ${scheme}`, page.url().includes('/console/sign-in?'), page.url());
}

/** One picture of all screens of a state and scheme. */
async function contactSheets() {
  const page = await browser.newPage({ viewport: { width: 1960, height: 1000 } });
  for (const scheme of SCHEMES) {
    for (const state of STATES) {
      const ending = `-${state}-${scheme}-1280.png`;
      const names = readdirSync(SCREENSHOTS).filter((name) => name.endsWith(ending)).sort();
      const figures = names.map((name) => `<figure><img src="${name}"><figcaption>${name.slice(0, -ending.length)}</figcaption></figure>`);
      const style = 'body{margin:8px;display:grid;grid-template-columns:repeat(6,1fr);gap:8px;font:14px sans-serif;background:#888}'
        + 'figure{margin:0}img{width:100%;aspect-ratio:128/90;object-fit:cover;object-position:top}';
      const file = path.join(SCREENSHOTS, `sheet-${state}-${scheme}.html`);
      writeFileSync(file, `<!doctype html><meta charset="utf-8"><style>${style}</style>${figures.join('')}`);
      await page.goto(pathToFileURL(file).href);
      await page.screenshot({ path: file.replace('.html', '.png'), fullPage: true });
    }
  }
  await page.close();
}
