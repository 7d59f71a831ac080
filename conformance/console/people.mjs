// People who sign in to the console with a provider of the operator's: that of the suite `browser`, as a process of its own.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { call } from '../lib.mjs';
import { allowProvider, context } from './browser.mjs';

const { BASE_URL, BOWLINE, DATA_DIR } = process.env;
const here = path.dirname(fileURLToPath(import.meta.url));

/** Starts the provider and makes it known to the server. */
export async function startPeople() {
  const work = mkdtempSync(path.join(tmpdir(), 'people.'));
  const child = spawn('node', [path.join(here, '../browser/people.mjs'), work, `${BASE_URL}/oauth/callback`], { stdio: 'inherit' });
  const file = path.join(work, 'people.json');
  for (let tries = 0; !existsSync(file); tries += 1) {
    if (tries > 600 || child.exitCode !== null) throw new Error('the identity provider did not start');
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
  const { issuer, clientId, clientSecret } = JSON.parse(readFileSync(file, 'utf8'));
  const secret = path.join(work, 'secret');
  writeFileSync(secret, clientSecret, { mode: 0o600 });
  execFileSync(BOWLINE, ['operator', 'providers', 'add', 'people', '--data-dir', DATA_DIR, '--label', 'People',
    '--issuer', issuer, '--client-id', clientId, '--client-secret-file', secret, '--scopes', 'email,profile']);
  allowProvider(issuer);
  return {
    issuer,
    stop() { child.kill(); rmSync(work, { recursive: true, force: true }); },
  };
}

/** A page of a new session of this person, and their UIDP. */
export async function signedIn(people, name, options) {
  const page = await (await context(options)).newPage();
  await page.goto(`${BASE_URL}/oauth?exit=console&connection=people&return=/console/me`);
  await page.waitForURL((url) => url.href.startsWith(people.issuer));
  await page.fill('input[name=login]', name);
  await page.fill('input[name=password]', 'anything');
  await page.click('button[type=submit]');
  await page.waitForURL((url) => !url.href.startsWith(people.issuer) || url.pathname.startsWith('/interaction/'));
  if (page.url().startsWith(people.issuer)) await page.click('button[type=submit]');
  await page.waitForURL((url) => url.href.startsWith(BASE_URL));
  await page.click('button:has-text("Continue")');
  await page.waitForURL(`${BASE_URL}/console/me`);
  const data = await (await page.request.get(`${BASE_URL}/console/me?format=json`)).json();
  return { page, uid: data.calls[0].response.subject };
}

/** Gives a role by its name. */
export async function bind(identityUid, roleName, group) {
  const role = (await call('GET', `/iam/v2/roles?name=${roleName}`)).roles[0].uid;
  await call('POST', `/iam/v2/roleBindings/${group}`, { identityUid, roleUid: role });
}
