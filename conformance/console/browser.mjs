// The browser of the suite, and how people get into the console with it. Whatever goes wrong in a page is a complaint: an
// error of its scripts, a report of the content security policy, a request to another origin, a dialog.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const { BASE_URL, BOWLINE, DATA_DIR, CONSOLE_MODULES, CHROMIUM } = process.env;
const modules = createRequire(path.join(CONSOLE_MODULES, 'package.json'));
const { chromium } = modules('playwright-core');

/** The text of axe-core, which only an evaluation brings into a page. */
export const AXE = readFileSync(modules.resolve('axe-core/axe.min.js'), 'utf8');

export const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
export const complaints = [];

/** A browser of its own. */
export async function context(options) {
  const made = await browser.newContext({ reducedMotion: 'reduce', timezoneId: 'UTC', locale: 'en-GB', ...options });
  made.on('page', (page) => {
    // What the provider of the suite shows is not ours.
    const isOurs = () => !provider || !page.url().startsWith(provider);
    page.on('console', (message) => {
      // The browser's own line about a status is what the server said.
      const isStatus = message.text().startsWith('Failed to load resource: the server responded with a status of 4');
      if (['error', 'warning'].includes(message.type()) && !isStatus && isOurs()) complaints.push(`${page.url()}: ${message.text()}`);
    });
    page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error}`));
    page.on('dialog', (dialog) => { complaints.push(`${page.url()}: a dialog`); dialog.dismiss(); });
    page.on('request', (request) => {
      const url = request.url();
      const isOwn = url.startsWith(BASE_URL) || url.startsWith('data:') || (provider && url.startsWith(provider));
      if (!isOwn && isOurs()) complaints.push(`${page.url()}: a request to ${url}`);
    });
  });
  return made;
}

/** Where people prove who they are; another origin, as for everyone who signs in. */
let provider;
export function allowProvider(issuer) { provider = issuer; }

const loginUrl = () => execFileSync(BOWLINE, ['operator', 'login-url', '--reason', 'conformance', '--data-dir', DATA_DIR], { encoding: 'utf8' }).trim();

/** Signs the operator in by a link that works once. */
export async function entered(options) {
  const page = await (await context(options)).newPage();
  await page.goto(loginUrl());
  await page.click('button:has-text("Open the console")');
  await page.waitForURL(`${BASE_URL}/console/`);
  return page;
}
