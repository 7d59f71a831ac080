// The web console in a real browser. Every page works without scripts, passes axe-core and fits its window in four states and
// two color schemes (`screens.mjs`), and escapes what others wrote (`xss.mjs`). An error in the browser's console, a report
// of the content security policy, a request to another origin or a dialog fails the suite.
//
//   CONSOLE_WHOLE              everything in place of a sample; see `.ci/long console`
//   CONSOLE_PARTS              of: people, flows, screens, texts (all by default)
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE, DATA_DIR          its binary and its data directory
//   CONSOLE_MODULES, CHROMIUM  playwright-core and axe-core, and the browser
//   WALK_MODULES               the identity provider
//   SCREENSHOTS                where the pictures go
import { mkdirSync } from 'node:fs';
import { check, checks } from '../lib.mjs';
import { browser, complaints, context, entered } from './browser.mjs';
import { flows } from './flows.mjs';
import { startPeople } from './people.mjs';
import { everyScreen } from './screens.mjs';
import { seed } from './seed.mjs';
import { everyText } from './xss.mjs';

const { BASE_URL, SCREENSHOTS, CONSOLE_PARTS } = process.env;
mkdirSync(SCREENSHOTS, { recursive: true });

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
  await page.waitForURL(/\/console\/image\?/);
  const text = await page.textContent('main');
  check('the image shows its build', text.includes('apko build'), text);
  check('and no secret', text.includes('LAUNCH_TOKEN=(not shown)') && !text.includes('hunter2'), text);
  await page.fill('#q', 'CVE-2026-7001');
  await page.click('header button:has-text("Search")');
  // The image has links to advisories too.
  await page.waitForURL(/\/console\/search\?/);
  await page.click('main a:has-text("BWL-")');
  await page.waitForURL(/\/console\/advisory\?/);
  const advisory = await page.textContent('main');
  check('search leads to an advisory', advisory.includes('openssl'), advisory);
  await page.goto(`${BASE_URL}/console/why`);
  await page.fill('#f-identity', world.identity);
  await page.fill('#f-capabilities', 'groups.delete');
  await page.fill('#f-scope', world.org);
  await page.click('main button:has-text("Show")');
  await page.waitForURL(/\/console\/why\?.*capabilities/);
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

const people = await startPeople();
try {
  const world = await seed();
  const parts = {
    people: async () => { await withoutScripts(world); await byKeyboard(); },
    flows: () => flows(entered, context),
    screens: () => everyScreen(world, people),
    texts: () => everyText(),
  };
  for (const name of CONSOLE_PARTS?.split(' ') ?? Object.keys(parts)) {
    if (!parts[name]) throw new Error(`CONSOLE_PARTS has ${name}; there are: ${Object.keys(parts).join(', ')}`);
    await parts[name]();
  }
  check('nothing complained', complaints.length === 0, complaints.join('\n'));
  console.log(`console: ${checks()} checks passed; pictures in ${SCREENSHOTS}`);
} finally {
  people.stop();
  await browser.close();
}
