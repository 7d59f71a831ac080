// The web console in a real browser. Every page is photographed at three widths in both color schemes and must fit them,
// passes axe-core, and works without scripts. An error in the browser's console, a report of the content security policy, a
// request to another origin or a dialog fails the suite.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE, DATA_DIR          its binary and its data directory
//   CONSOLE_MODULES, CHROMIUM  playwright-core and axe-core, and the browser
//   SCREENSHOTS                where the pictures go
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { check, checks } from '../lib.mjs';
import { flows } from './flows.mjs';
import { seed } from './seed.mjs';

const { BASE_URL, BOWLINE, DATA_DIR, CONSOLE_MODULES, CHROMIUM, SCREENSHOTS } = process.env;
const modules = createRequire(path.join(CONSOLE_MODULES, 'package.json'));
const { chromium } = modules('playwright-core');
const axe = readFileSync(modules.resolve('axe-core/axe.min.js'), 'utf8');
const WIDTHS = [400, 1280, 1920];
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
mkdirSync(SCREENSHOTS, { recursive: true });

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
const complaints = [];

/** A browser of its own. Whatever goes wrong in its pages is a complaint. */
async function context(options) {
  const made = await browser.newContext({ reducedMotion: 'reduce', timezoneId: 'UTC', locale: 'en-GB', ...options });
  made.on('page', (page) => {
    page.on('console', (message) => {
      // The browser's own line about a status is what the server said.
      const isStatus = message.text().startsWith('Failed to load resource: the server responded with a status of 4');
      if (['error', 'warning'].includes(message.type()) && !isStatus) complaints.push(`${page.url()}: ${message.text()}`);
    });
    page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error}`));
    page.on('dialog', (dialog) => { complaints.push(`${page.url()}: a dialog`); dialog.dismiss(); });
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(BASE_URL) && !url.startsWith('data:')) complaints.push(`${page.url()}: a request to ${url}`);
    });
  });
  return made;
}

const loginUrl = () => execFileSync(BOWLINE, ['operator', 'login-url', '--reason', 'conformance', '--data-dir', DATA_DIR], { encoding: 'utf8' }).trim();

/** Signs the operator in by a link that works once. */
async function entered(options) {
  const page = await (await context(options)).newPage();
  await page.goto(loginUrl());
  await page.click('button:has-text("Open the console")');
  await page.waitForURL(`${BASE_URL}/console/`);
  return page;
}

async function fits(page, name, scheme) {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    const content = await page.evaluate(() => document.documentElement.scrollWidth);
    if (content > width) complaints.push(`${name} does not fit ${width} pixels, ${scheme}: it is ${content} wide`);
    await page.screenshot({ path: path.join(SCREENSHOTS, `${name}-${scheme}-${width}.png`), fullPage: true });
  }
}

/** Runs axe-core, whose text only this evaluation brings into the page. */
async function accessible(page, name, scheme) {
  for (const width of [400, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    for (const details of await page.$$('main details')) await details.evaluate((one) => { one.open = true; });
    await page.evaluate(axe);
    const found = await page.evaluate((tags) => globalThis.axe.run({ runOnly: tags }), RULES);
    const told = found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`).join('\n    ')}`);
    complaints.push(...told.map((one) => `${name} at ${width} pixels, ${scheme}: ${one}`));
  }
}

function screens(world) {
  const at = (page, query) => `/console/${page}?${new URLSearchParams(query)}`;
  const { org, empty, group, repo, image, older, tag, advisory, artifact, subscription, identity, role } = world;
  return {
    organizations: '/console/',
    home: at('home', { in: org }),
    'home-of-group': at('home', { in: group }),
    'home-empty': at('home', { in: empty }),
    'home-none': '/console/home',
    groups: at('groups', { in: org }),
    group: at('group', { uid: org }),
    identities: at('identities', { in: org }),
    identity: at('identity', { uid: identity }),
    roles: '/console/roles',
    role: at('role', { uid: role }),
    bindings: at('bindings', { in: org }),
    access: at('access', { in: org }),
    invites: at('invites', { in: org }),
    providers: at('providers', { in: org }),
    upstreams: at('upstreams', { in: org }),
    findings: at('findings', { in: org }),
    posture: at('posture', { in: org }),
    'posture-empty': at('posture', { in: empty }),
    repositories: at('repositories', { in: org }),
    repository: at('repository', { uid: repo }),
    tags: at('tags', { repo }),
    image: at('image', { repo, digest: image }),
    'image-packages': at('image-packages', { repo, digest: image }),
    policy: at('policy', { repo }),
    compare: at('compare', { repo, from: older, to: image }),
    'tag-history': at('tag-history', { tag }),
    advisories: at('advisories', { in: org }),
    advisory: at('advisory', { uid: advisory }),
    packages: '/console/packages',
    package: at('package', { id: artifact }),
    decision: at('decision', { in: org, purl: 'pkg:npm/event-stream@3.3.6' }),
    policies: at('policies', { in: org }),
    blocked: at('blocked', { in: org }),
    audit: at('audit', { in: org }),
    'audit-entry': at('audit-entry', { organization: org, sequence: '1' }),
    history: at('history', { resource: group }),
    subscriptions: at('subscriptions', { in: org }),
    deliveries: at('deliveries', { uid: subscription }),
    delivery: at('delivery', { uid: subscription, number: '1' }),
    methods: '/console/methods',
    method: at('method', { name: 'chainguard.platform.iam.v2.GroupsService.GetGroup', send: 'true', 'f.uid': org }),
    operator: '/console/operator',
    'organizations-by-size': '/console/organizations',
    search: at('search', { q: 'engine' }),
    'search-empty': at('search', { q: 'no such thing' }),
    why: at('why', { identity, capabilities: 'repo.create,repo.delete', scope: group }),
    'why-empty': '/console/why',
    me: '/console/me',
    missing: '/console/no-such-page',
    invalid: at('group', { uid: 'x' }),
    filtered: at('groups', { in: org, name: 'no such group' }),
  };
}

async function everyScreen(world) {
  for (const scheme of ['light', 'dark']) {
    const page = await entered({ colorScheme: scheme });
    for (const [name, where] of Object.entries(screens(world))) {
      const before = complaints.length;
      await page.goto(BASE_URL + where);
      await fits(page, name, scheme);
      await accessible(page, name, scheme);
      console.log(complaints.length === before ? `  ok   ${name}, ${scheme}` : `  BAD  ${name}, ${scheme}`);
    }
    const outside = await (await context({ colorScheme: scheme })).newPage();
    await outside.goto(`${BASE_URL}/console/groups`);
    await fits(outside, 'sign-in', scheme);
    await accessible(outside, 'sign-in', scheme);
    await page.goto(`${BASE_URL}/console/`);
    await page.click('button:has-text("Sign out")');
    check(`signing out leads to sign-in, ${scheme}`, page.url().endsWith('/console/sign-in?notice=out'), page.url());
    await page.goto(`${BASE_URL}/console/me`);
    check(`and the session is over, ${scheme}`, page.url().includes('/console/sign-in?'), page.url());
  }
}

/** What people do, without scripts: from the root to an image, a search, an explanation, and out. */
async function withoutScripts(world) {
  const page = await entered({ javaScriptEnabled: false });
  await page.goto(BASE_URL);
  check('the root leads to the console', page.url() === `${BASE_URL}/console/`, page.url());
  await page.click('main a:has-text("rockets")');
  await page.click('main a:has-text("Repositories")');
  await page.fill('main input[name=q]', 'engi');
  await page.click('main button:has-text("Show")');
  check('a filter stands in the address', new URL(page.url()).searchParams.get('q') === 'engi', page.url());
  await page.click('main th a:has-text("engine")');
  await page.click('main th a:has-text("v1.4.0")');
  const text = await page.textContent('main');
  check('the image shows its build', text.includes('apko build'), text);
  check('and no secret', text.includes('LAUNCH_TOKEN=(not shown)') && !text.includes('hunter2'), text);
  await page.fill('#q', 'CVE-2026-1001');
  await page.click('header button:has-text("Search")');
  await page.click('main a:has-text("BWL-")');
  check('search leads to an advisory', (await page.textContent('main')).includes('openssl'));
  await page.goto(`${BASE_URL}/console/why`);
  await page.fill('#f-identity', world.identity);
  await page.fill('#f-capabilities', 'groups.delete');
  await page.fill('#f-scope', world.org);
  await page.click('main button:has-text("Show")');
  check('a denial is explained', (await page.textContent('h2#decision')).includes('denied'));
  await page.click('summary:has-text("Show as code")');
  const line = await page.textContent('details.code pre');
  check('the page shows its calls', line.startsWith('curl ') && line.includes('access:explain'), line);
}

/** By keyboard alone: the skip link, the search field, a row, with focus that can be seen. */
async function byKeyboard() {
  const page = await entered({ colorScheme: 'light' });
  await page.keyboard.press('Tab');
  const first = await page.evaluate(() => document.activeElement.textContent);
  check('the first stop skips to the content', first === 'Skip to the content', first);
  await page.keyboard.press('Enter');
  check('which takes the focus there', await page.evaluate(() => document.activeElement.id) === 'content');
  // Past what can be done on the page, to the first organization.
  const isHome = () => document.activeElement.getAttribute('href')?.startsWith('/console/home?') ?? false;
  for (let stops = 0; stops < 10 && !await page.evaluate(isHome); stops += 1) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/console\/home\?/);
  await page.keyboard.press('/');
  await page.keyboard.type('engine');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/console\/search\?.*q=engine/);
  for (let stops = 0; stops < 40; stops += 1) {
    await page.keyboard.press('Tab');
    const outline = await page.evaluate(() => document.activeElement === document.body ? 'end' : getComputedStyle(document.activeElement).outlineStyle);
    if (outline === 'end') break;
    if (outline === 'none') throw new Error(`no visible focus: ${await page.evaluate(() => document.activeElement.outerHTML)}`);
  }
  check('every stop can be seen', true);
}

try {
  const world = await seed();
  await withoutScripts(world);
  await byKeyboard();
  await flows(entered, context);
  await everyScreen(world);
  check('nothing complained', complaints.length === 0, complaints.join('\n'));
  console.log(`console: ${checks()} checks passed; pictures in ${SCREENSHOTS}`);
} finally {
  await browser.close();
}
