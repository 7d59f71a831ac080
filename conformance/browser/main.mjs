// People in a real browser, without scripts: signing in, joining by invitation, an organization's own provider, devices,
// programs that sign in through the browser, signing out. Every page is photographed at two widths and must fit both.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE, DATA_DIR          its binary and its data directory
//   SDK                        the Go suite's binary, for the SDK's own helpers
//   PEOPLE                     people.json of the identity provider
//   BROWSER_MODULES, CHROMIUM  playwright-core, and the browser
//   SCREENSHOTS                where the pictures go
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { pushed, receive } from './events.mjs';

const { BASE_URL, OPERATOR_TOKEN, BOWLINE, DATA_DIR, SDK, PEOPLE, BROWSER_MODULES, CHROMIUM } = process.env;
const screenshots = process.env.SCREENSHOTS;
const { chromium } = createRequire(path.join(BROWSER_MODULES, 'package.json'))('playwright-core');
const people = JSON.parse(readFileSync(PEOPLE, 'utf8'));
const work = mkdtempSync(path.join(tmpdir(), 'browser.'));
mkdirSync(screenshots, { recursive: true });
const run = promisify(execFile);
let checks = 0;
const photographed = new Set();

function check(what, condition, detail = '') {
  if (!condition) throw new Error(`${what} ${detail}`);
  checks += 1;
  console.log(`  ok   ${what}`);
}

async function call(verb, where, body, token = OPERATOR_TOKEN) {
  const answer = await fetch(BASE_URL + where, {
    method: verb,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, body: text ? JSON.parse(text) : {} };
}

async function done(verb, where, body, token) {
  const { status, body: answer } = await call(verb, where, body, token);
  if (status !== 200) throw new Error(`${verb} ${where}: ${status} ${JSON.stringify(answer)}`);
  return answer;
}

const made = (where, body) => done('POST', where, body);

const roleUid = async (name) => (await call('GET', `/iam/v2/roles?name=${name}`)).body.roles[0].uid;
const bindingsOf = async (identity) => (await call('GET', `/iam/v2/roleBindings?identity=${identity}`)).body.roleBindings;

// ---- the browser --------------------------------------------------------------------------------

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});

/** A browser of its own, without scripts. */
async function person() {
  const context = await browser.newContext({ javaScriptEnabled: false, colorScheme: 'light' });
  return context.newPage();
}

/** Photographs a page of ours at both widths, and sees that it fits. */
async function photograph(page, name) {
  for (const width of [400, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    const content = await page.evaluate(() => document.documentElement.scrollWidth);
    check(`${name} fits ${width} pixels`, content <= width, `it is ${content} wide`);
    await page.screenshot({ path: path.join(screenshots, `${name}-${width}.png`), fullPage: true });
  }
  photographed.add(name);
  const facts = await page.evaluate(() => ({
    lang: document.documentElement.lang,
    headings: document.querySelectorAll('h1').length,
    main: document.querySelectorAll('main').length,
    unnamed: [...document.querySelectorAll('input:not([type=hidden])')].filter((input) => input.labels.length === 0).length,
  }));
  check(`${name} has a language, one heading, a main part and labels`,
    facts.lang === 'en' && facts.headings === 1 && facts.main === 1 && facts.unnamed === 0, JSON.stringify(facts));
}

/** Types a name at the identity provider, whose pages are its own. */
async function atProvider(page, name) {
  await page.waitForURL((url) => url.href.startsWith(people.issuer));
  await page.fill('input[name=login]', name);
  await page.fill('input[name=password]', 'anything');
  await page.click('button[type=submit]');
  await page.waitForURL((url) => !url.href.startsWith(people.issuer) || url.pathname.startsWith('/interaction/'));
  if (page.url().startsWith(people.issuer)) await page.click('button[type=submit]');
  await page.waitForURL((url) => url.href.startsWith(BASE_URL));
}

const heading = (page) => page.textContent('h1');
const press = (page, name) => page.click(`button:has-text("${name}")`);

async function expectHeading(page, text) {
  const found = await heading(page);
  check(`the page says: ${text}`, found === text, `it says: ${found}: ${await page.textContent('main')}`);
}

// ---- what people do -----------------------------------------------------------------------------

async function signingIn() {
  const page = await person();
  await page.goto(`${BASE_URL}/oauth`);
  await expectHeading(page, 'Sign in');
  await photograph(page, 'sign-in');
  await page.click('text=Continue with Example Company');
  await atProvider(page, 'alan');
  await expectHeading(page, 'Confirm your sign-in');
  check('the page names the person', (await page.textContent('main')).includes('alan@example.com'));
  await photograph(page, 'confirm');
  await press(page, 'Continue');
  await expectHeading(page, 'You are signed in');
  await photograph(page, 'signed-in');
  await page.goto(`${BASE_URL}/signout`);
  await photograph(page, 'sign-out');
  await press(page, 'Sign out');
  await expectHeading(page, 'You are signed out');
  await photograph(page, 'signed-out');
}

async function cancelling() {
  const page = await person();
  await page.goto(`${BASE_URL}/oauth?connection=company`);
  await atProvider(page, 'alan');
  await press(page, 'Cancel');
  await expectHeading(page, 'Cancelled');
  await photograph(page, 'cancelled');
  await page.goto(`${BASE_URL}/oauth?exit=redirect&redirect=https://elsewhere.example/`);
  await photograph(page, 'refused');
  check('nobody is sent elsewhere', page.url().startsWith(BASE_URL));
}

async function joining() {
  const organization = (await made('/iam/v2/groups', { name: 'invites people' })).uid;
  const invite = await made(`/iam/v2/groupInvites/${organization}`, {
    roleUid: await roleUid('viewer'), ttl: '3600s', email: 'ada@example.com', singleUse: true,
  });
  const intruder = await person();
  await intruder.goto(`${BASE_URL}/oauth?connection=company&invite=${encodeURIComponent(invite.code)}`);
  await atProvider(intruder, 'mallory');
  await press(intruder, 'Continue');
  check('an invitation for somebody else is refused', (await heading(intruder)) !== 'You are signed in');
  await photograph(intruder, 'invitation-refused');

  const page = await person();
  await page.goto(`${BASE_URL}/oauth?connection=company&invite=${encodeURIComponent(invite.code)}`);
  await atProvider(page, 'ada');
  await photograph(page, 'invitation');
  await press(page, 'Continue');
  await expectHeading(page, 'You are signed in');
  const bindings = (await call('GET', `/iam/v2/roleBindings?group=${organization}`)).body.roleBindings;
  check('the invitation bound the role', bindings.some((one) => one.identity.email === 'ada@example.com' && one.role.name === 'viewer'),
    JSON.stringify(bindings));
}

async function ownProvider() {
  const organization = (await made('/iam/v2/groups', { name: 'sso.example', verified: true, kind: 'ORG_KIND_CUSTOMER' })).uid;
  const viewer = await roleUid('viewer');
  const provider = await made(`/iam/v2/identityProviders/${organization}`, {
    name: 'sso', defaultRole: viewer,
    oidc: { issuer: people.otherIssuer, clientId: people.clientId, clientSecret: people.clientSecret, additionalScopes: ['email', 'groups'], groupsClaim: 'groups' },
  });
  await made(`/iam/v2/externalGroupRoleMappings/${provider.uid}`, { externalGroupId: 'engineers', roleUid: await roleUid('editor') });
  const page = await person();
  await page.goto(`${BASE_URL}/oauth`);
  await page.fill('input[name=organization]', 'nobody.example');
  await press(page, 'Continue');
  await photograph(page, 'unknown-organization');
  await page.fill('input[name=organization]', 'sso.example');
  const program = signInWith('login');
  const url = new URL(await program.url);
  url.searchParams.delete('client_id');
  url.searchParams.set('idp_id', 'sso.example');
  await page.goto(url.href);
  check('the page names the address before the browser goes there',
    (await page.textContent('main')).includes(new URL(people.otherIssuer).origin), page.url());
  await photograph(page, 'organization-provider');
  await page.click('a:has-text("Continue")');
  await page.waitForURL((at) => at.href.startsWith(people.otherIssuer));
  await page.fill('input[name=login]', 'grace');
  await page.fill('input[name=password]', 'anything');
  await page.click('button[type=submit]');
  await page.waitForURL((at) => !at.href.startsWith(people.otherIssuer) || at.pathname.startsWith('/interaction/'));
  if (page.url().startsWith(people.otherIssuer)) await page.click('button[type=submit]');
  await page.waitForURL((at) => at.href.startsWith(BASE_URL));
  await press(page, 'Continue');
  const who = await program.done;
  check('the first sign-in bound the default role',
    (await bindingsOf(who.identity)).some((one) => one.role.uid === viewer), JSON.stringify(who));
  check('a session with roles from groups has no refresh token', who.refresh === false);
  const token = readFileSync(path.join(program.home, '.cache', 'chainguard', BASE_URL.replaceAll('/', '-'), 'oidc-token'), 'utf8');
  const created = await call('POST', `/registry/v2/repos/${organization}`, { name: 'made-by-an-engineer' }, token);
  check('the role of the group counts: a viewer could not have made a repository', created.status === 200, JSON.stringify(created));
  const seen = await call('GET', '/iam/v2/groups', undefined, token);
  check('the session sees its organization alone', seen.body.groups.every((group) => group.uid.startsWith(organization)), JSON.stringify(seen));
}

/** Every event that the Go suite cannot bring about, offered to the SDK's receiver. */
async function events() {
  const organization = (await made('/iam/v2/groups', { name: 'example.com', verified: true, kind: 'ORG_KIND_CUSTOMER' })).uid;
  const receiver = await receive(SDK, BASE_URL, organization);
  try {
    await made(`/events/v1/subscriptions/${organization}`, { sink: receiver.url });
    const expected = await changes(organization);
    const came = await receiver.wait(expected.length);
    const kinds = came.map((one) => one.type);
    check('the SDK’s receiver gets each event, in order', kinds.join() === expected.join(), `${kinds.join('\n')}\n instead of \n${expected.join('\n')}`);
    for (const one of came) {
      check(`it accepts ${one.type}, and not with another body`, one.accepted && !one.forged, JSON.stringify(one));
      check('and the SDK decodes it, if it can know it', !one.decode || one.type.startsWith('dev.bowline.'), JSON.stringify(one));
    }
  } finally {
    receiver.stop();
  }
}

/** Makes the changes: the kinds of their events. */
async function changes(organization) {
  const bob = await signedIn('bob');
  const kinds = [];
  const step = async (kind, ...call) => {
    kinds.push(kind);
    return done(...call);
  };
  const api = 'dev.chainguard.api';
  const invite = await step(`${api}.iam.group_invite.created.v1`, 'POST', `/iam/v2/groupInvites/${organization}`,
    { roleUid: await roleUid('viewer'), ttl: '3600s', email: 'barbara@example.com', singleUse: true });
  const page = await person();
  await page.goto(`${BASE_URL}/oauth?connection=company&invite=${encodeURIComponent(invite.code)}`);
  await atProvider(page, 'barbara');
  await press(page, 'Continue');
  await expectHeading(page, 'You are signed in');
  kinds.push(`${api}.iam.rolebindings.created.v1`, `${api}.auth.registered.v1`);
  await step('dev.bowline.iam.group_access.requested.v1', 'POST', `/iam/v2/groups/${organization}:requestGroupAccess`, {}, bob);
  await step(`${api}.iam.terms.accepted.v1`, 'POST', `/iam/v2/terms/${organization}`, { documentIds: ['terms-1'] });
  const repo = (await step(`${api}.platform.registry.repo.created.v1`, 'POST', `/registry/v2/repos/${organization}`, { name: 'app' })).uid;
  await pushed(BASE_URL, OPERATOR_TOKEN, `${organization}/app`, 'first');
  const image = await pushed(BASE_URL, OPERATOR_TOKEN, `${organization}/app`, 'second');
  kinds.push('dev.chainguard.registry.push.v1', 'dev.chainguard.registry.push.v1');
  const tag = (await step(`${api}.platform.registry.tag.created.v1`, 'POST', `/registry/v1/tags/${repo}`, { name: 'v1' })).id;
  await step(`${api}.platform.registry.tag.updated.v1`, 'PUT', `/registry/v1/tags/${tag}`, { name: 'v2' });
  await step(`${api}.platform.registry.tag.deleted.v1`, 'DELETE', `/registry/v1/tags/${tag}`);
  await step('dev.bowline.registry.scan_report.stored.v1', 'POST', `/scans/v1/repos/${repo}/reports`,
    { digest: image.digest, scanner: 'SCANNER_NAME_GRYPE', report: Buffer.from('{"matches":[],"descriptor":{"version":"0.9"}}').toString('base64') });
  await step('dev.bowline.registry.policy.updated.v1', 'PATCH', `/registrypolicies/v1/repos/${repo}`, { retention: { keepLast: 1 } });
  await step('dev.bowline.registry.retention.applied.v1', 'POST', `/registrypolicies/v1/repos/${repo}:applyRetention`, {});
  await image.pull();
  kinds.push('dev.chainguard.registry.pull.v1');
  return kinds;
}

/** The token of somebody who signs in through the SDK. */
async function signedIn(name) {
  const program = signInWith('login');
  const page = await person();
  await page.goto(await program.url);
  if (page.url().startsWith(BASE_URL)) await page.click('text=Continue with Example Company');
  await atProvider(page, name);
  await press(page, 'Continue');
  await program.done;
  return readFileSync(path.join(program.home, '.cache', 'chainguard', BASE_URL.replaceAll('/', '-'), 'oidc-token'), 'utf8').trim();
}

/** Starts one of the SDK's helpers, or the command line; what a person has to open comes on stderr. */
function signInWith(kind, extra = {}) {
  const home = mkdtempSync(path.join(work, 'home.'));
  const command = kind.startsWith('bowline ')
    ? [BOWLINE, ['auth', 'login', '--api', BASE_URL, ...kind.split(' ').slice(1)]]
    : [SDK, ['-base-url', BASE_URL, 'signin', kind]];
  const child = spawn(...command, { env: { PATH: process.env.PATH, HOME: home, ...extra } });
  let out = '';
  let err = '';
  let found;
  const url = new Promise((resolve) => { found = resolve; });
  child.stdout.on('data', (data) => { out += data; });
  child.stderr.on('data', (data) => {
    err += data;
    const lines = err.split('\n');
    const match = lines.map((line) => line.match(/https?:\/\/\S+/)).find(Boolean);
    if (match) found(match[0]);
  });
  const done = new Promise((resolve, reject) => {
    child.on('close', (status) => {
      if (status !== 0) reject(new Error(`${kind} ended with ${status}: ${err}`));
      else resolve(kind.startsWith('bowline ') ? { identity: out.trim() } : JSON.parse(out.trim().split('\n').at(-1)));
    });
  });
  done.catch(() => {});
  return { url, done, home, said: () => err };
}

async function programs() {
  for (const kind of ['login', 'bowline --no-browser --refresh --provider company']) {
    const program = signInWith(kind);
    const page = await person();
    await page.goto(await program.url);
    if (page.url().startsWith(BASE_URL)) await page.click('text=Continue with Example Company');
    await atProvider(page, 'linus');
    if (kind === 'login') await photograph(page, 'confirm-program');
    await press(page, 'Continue');
    const who = await program.done;
    check(`${kind}: somebody is signed in`, /^[0-9a-f]{40}$/.test(who.identity), JSON.stringify(who));
    if (kind !== 'login') {
      const status = await run(BOWLINE, ['auth', 'status', '-o', 'json'], { env: { PATH: process.env.PATH, HOME: program.home } });
      check('the command line’s next call is made as that person', JSON.parse(status.stdout).identity === who.identity);
      const printed = (await run(BOWLINE, ['auth', 'token'], { env: { PATH: process.env.PATH, HOME: program.home } })).stdout.trim();
      check('so is one with the printed token', (await call('GET', '/auth/v1/ok', undefined, printed)).body.subject === who.identity);
      await run(BOWLINE, ['auth', 'logout'], { env: { PATH: process.env.PATH, HOME: program.home } });
      check('logging out ended it', (await call('GET', '/auth/v1/ok', undefined, printed)).status === 401);
    }
    // Signing out in the browser ends what the program has.
    if (kind === 'login') {
      const again = await run(SDK, ['-base-url', BASE_URL, 'signin', 'cache'], { env: { PATH: process.env.PATH, HOME: program.home } });
      check('the kept token works', JSON.parse(again.stdout).identity === who.identity);
      // In another tab: the program's own page may still be on its way, to a listener that ends with the program.
      const tab = await page.context().newPage();
      await tab.goto(`${BASE_URL}/signout`);
      await press(tab, 'Sign out');
      const after = await run(SDK, ['-base-url', BASE_URL, 'signin', 'cache'], { env: { PATH: process.env.PATH, HOME: program.home } })
        .then(() => 'works', (error) => error.stderr);
      check('signing out ended the token', after.includes('Unauthenticated'), after);
    }
  }
}

async function headless() {
  for (const kind of ['headless', 'bowline --headless']) {
    const program = signInWith(kind);
    const page = await person();
    await page.goto(await program.url);
    await page.click('text=Continue with Example Company');
    await atProvider(page, 'ken');
    if (kind === 'headless') await photograph(page, 'confirm-headless');
    else {
      const shown = (await page.textContent('dd.code')).trim();
      check('the terminal shows the code of the page', program.said().includes(shown), `${shown}: ${program.said()}`);
    }
    await press(page, 'Continue');
    await expectHeading(page, 'You are signed in');
    check(`${kind}: somebody is signed in`, /^[0-9a-f]{40}$/.test((await program.done).identity));
  }
}

async function devices() {
  for (const kind of ['device', 'bowline --device --refresh']) {
    const program = signInWith(kind);
    await program.url;
    const code = program.said().match(/\b([A-Z0-9]{4}-[A-Z0-9]{4})\b/)[1];
    const page = await person();
    await page.goto(`${BASE_URL}/activate`);
    if (kind === 'device') {
      await photograph(page, 'activate');
      await page.fill('input[name=user_code]', 'AAAA-AAAA');
      await press(page, 'Continue');
      await photograph(page, 'activate-wrong');
    }
    await page.fill('input[name=user_code]', code.toLowerCase());
    await press(page, 'Continue');
    await page.click('text=Continue with Example Company');
    await atProvider(page, 'dennis');
    if (kind === 'device') await photograph(page, 'confirm-device');
    await press(page, 'Continue');
    await expectHeading(page, 'You are signed in');
    check(`${kind}: somebody is signed in`, /^[0-9a-f]{40}$/.test((await program.done).identity));
  }
}

async function operator() {
  const { stdout } = await run(BOWLINE, ['operator', 'login-url', '--reason', 'conformance', '--data-dir', DATA_DIR]);
  const page = await person();
  await page.goto(stdout.trim());
  await photograph(page, 'operator');
  await press(page, 'Show the token');
  await photograph(page, 'operator-token');
  const token = (await page.inputValue('#token').catch(() => page.textContent('#token'))).trim();
  check('the operator’s token works', (await call('GET', '/iam/v2/groups', undefined, token)).status === 200);
  await page.goto(stdout.trim());
  const button = await page.$('button:has-text("Show the token")');
  if (button) await button.click();
  check('the link worked once', (await page.$('#token')) === null);
}

try {
  const secret = path.join(work, 'secret');
  writeFileSync(secret, people.clientSecret, { mode: 0o600 });
  await run(BOWLINE, ['operator', 'providers', 'add', 'company', '--data-dir', DATA_DIR, '--label', 'Example Company',
    '--issuer', people.issuer, '--client-id', people.clientId, '--client-secret-file', secret, '--scopes', 'email,profile']);
  for (const part of [signingIn, cancelling, joining, ownProvider, programs, headless, devices, events, operator]) {
    console.log(`\n${part.name}`);
    await part();
  }
  console.log(`\nbrowser: ${checks} checks passed, ${photographed.size} pages photographed in ${screenshots}`);
} catch (error) {
  console.error(`browser: FAILED after ${checks} checks: ${error.stack}`);
  process.exitCode = 1;
} finally {
  await browser.close();
  rmSync(work, { recursive: true, force: true });
}
