// The pictures of docs/pictures, of a server that `bowline serve --demo` filled. By hand, when pages have changed:
//
//   bowline serve --demo --data-dir DIR
//   BASE_URL=http://127.0.0.1:8080 BOWLINE=target/release/bowline DATA_DIR=DIR CONSOLE_MODULES=... CHROMIUM=... \
//     node conformance/console/pictures.mjs docs/pictures
//
//   CONSOLE_MODULES   where `npm ci` of this directory's package-lock.json installed playwright-core
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';

const { BASE_URL, BOWLINE, DATA_DIR, CONSOLE_MODULES, CHROMIUM } = process.env;
const [target] = process.argv.slice(2);
if (!target) throw new Error('usage: pictures.mjs DIRECTORY');
const { chromium } = createRequire(path.join(CONSOLE_MODULES, 'package.json'))('playwright-core');
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });

/** A page in which the operator is signed in. */
async function entered(colorScheme) {
  const options = { colorScheme, viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce', timezoneId: 'UTC', locale: 'en-GB' };
  const page = await (await browser.newContext(options)).newPage();
  const link = execFileSync(BOWLINE, ['operator', 'login-url', '--reason', 'pictures', '--data-dir', DATA_DIR], { encoding: 'utf8' });
  await page.goto(link.trim());
  await page.click('button:has-text("Open the console")');
  await page.waitForURL(`${BASE_URL}/console/`);
  return page;
}

/** Takes a picture of what is shown, from an element on. */
async function picture(page, name, from = 'main') {
  await page.locator(from).first().scrollIntoViewIfNeeded();
  await page.screenshot({ path: path.join(target, `${name}.png`) });
  console.log(`${name}.png`);
}

/** Follows the first link of the content that has this text or address. */
async function follow(page, selector) {
  const address = await page.getAttribute(`main ${selector}`, 'href');
  await page.goto(new URL(address, page.url()).href);
}

const light = await entered('light');
await follow(light, 'a:has-text("acme")');
const organization = new URL(light.url()).searchParams.get('in');
await picture(light, 'home');
await light.goto(`${BASE_URL}/console/repositories?in=${organization}`);
await follow(light, 'table a');
const repository = light.url();
await picture(light, 'repository');
await light.goto(`${BASE_URL}/console/group?uid=${organization}`);
await follow(light, 'a:has-text("Create a group")');
await picture(light, 'form');

const dark = await entered('dark');
await dark.goto(repository);
await follow(dark, 'a[href*="/console/image?"]');
await picture(dark, 'image');
await dark.goto(`${BASE_URL}/console/posture?in=${organization}`);
await picture(dark, 'posture');
await dark.goto(`${BASE_URL}/console/audit?in=${organization}`);
await picture(dark, 'audit');
await browser.close();
