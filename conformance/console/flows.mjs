// What people change through pages: each flow begins at the home of an organization, follows links to the form of a
// method, and sends it. It is done with a mouse, without scripts, and by keyboard alone, each time in an organization of its
// own, and the API must then return what the flow was for. The lines that the form shows as code are run in a shell against a
// second server, where the API must return the same.
//
// A flow is data:
//   name      what was done
//   as        who does it: the operator, unless it says `person`
//   home      the group whose home it begins at, unless it is the organization
//   given     makes what it needs, and registers ids by name in `world.ids`
//   way       names of links: the first one in the navigation, the others in the page; [ROW, LINK] for one in a table
//   fill      texts by the path of their field
//   confirm   what is typed to confirm a deletion
//   preview   the preview is looked at first
//   secret    the form holds a secret, so that no line has it
//   says      what the page of the response says besides
//   proof     what the API returns, and what it should
//   isLater   the server does it after its answer
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { check } from '../lib.mjs';
import { access } from './flows/access.mjs';
import { activity } from './flows/activity.mjs';
import { advisories } from './flows/advisories.mjs';
import { Keyboard, Mouse } from './flows/driver.mjs';
import { groups } from './flows/groups.mjs';
import { registry } from './flows/images.mjs';
import { packages } from './flows/packages.mjs';
import { People, answers, endings, persons } from './flows/people.mjs';
import { World, firstServer, secondServer, translated } from './flows/world.mjs';

const { BASE_URL, CONSOLE_WHOLE, FLOWS } = process.env;
/** The flows of every run; `CONSOLE_WHOLE=1` runs all, `FLOWS=TEXT` those with a text in their name. */
const SAMPLE = [
  'a group is created', 'an identity trusts another subject', 'a role binding is removed', 'a repository becomes public, after its preview',
  'an event is approved', 'a package is exempted',
];
const ALL = [...groups, ...access, ...registry, ...advisories, ...packages, ...activity, ...persons, ...answers, ...endings];
/** Programs of the lines, by the caption that a page gives them. */
const PROGRAMS = { curl: 'curl', 'Command line': 'bowline', grpcurl: 'grpcurl' };

const USES = [['mouse', Mouse, {}], ['noscript', Mouse, { javaScriptEnabled: false }], ['keyboard', Keyboard, {}]];

/** Does the chosen flows. `entered` makes a page of the operator, `context` a browser whose complaints count. */
export async function flows(entered, context) {
  const chosen = ALL.filter((flow) => (FLOWS ? flow.name.includes(FLOWS) : CONSOLE_WHOLE || SAMPLE.includes(flow.name)));
  const directory = mkdtempSync(path.join(tmpdir(), 'flows.'));
  // So that programs that were started end as well.
  process.once('SIGTERM', () => process.exit(143));
  const second = await secondServer(directory);
  let people;
  try {
    const browsers = await Promise.all(USES.map(async ([mark, Driver, options]) => (
      { driver: new Driver(await entered(options)), world: await new World(firstServer, mark).seed() })));
    const shells = await Promise.all(Object.entries(PROGRAMS).map(async ([caption, mark]) => (
      { caption, world: await new World(second, mark).seed() })));
    const operators = { browsers, shells };
    const failed = [];
    for (const flow of chosen) {
      // Not earlier: their sessions end when they do nothing for long.
      if (!people && [...persons, ...answers, ...endings].includes(flow)) {
        people = await People.start([firstServer, second], browsers[0].driver.page.context().browser(), directory);
        operators.persons = await signedIn(people, context, operators);
      }
      await through(flow, flow.as === 'person' ? operators.persons : operators).catch((error) => {
        console.log(`  BAD  ${flow.name}: ${error.message}`);
        failed.push(flow.name);
      });
    }
    check(`${chosen.length} flows, each with a mouse, without scripts, by keyboard and in a shell`, failed.length === 0, failed.join('\n'));
  } finally {
    people?.stop();
    await second.stop();
    rmSync(directory, { recursive: true });
  }
}

/** The same for persons, one for each use, whom the operators' worlds know. */
async function signedIn(people, context, { browsers, shells }) {
  const persons = { browsers: [], shells: [] };
  for (const [at, { world }] of browsers.entries()) {
    const [mark, Driver, options] = USES[at];
    world.person = await people.person(firstServer, mark);
    const page = await (await context({ ...options, storageState: await people.state(firstServer, mark) })).newPage();
    persons.browsers.push({ driver: new Driver(page), world: world.person });
  }
  for (const { caption, world } of shells) {
    world.person = await people.person(world.server, world.mark);
    persons.shells.push({ caption, world: world.person });
  }
  return persons;
}

/** Does one flow in every way. */
async function through(flow, { browsers, shells }) {
  const lines = {};
  for (const { driver, world } of browsers) await done(flow, driver, world, lines);
  if (flow.secret) return;
  for (const { caption, world } of shells) await pasted(flow, lines[caption], [browsers[0].world, world]);
}

/** Does a flow through pages. The one with a mouse takes the lines of its form. */
async function done(flow, driver, world, lines) {
  const what = `${flow.name}, ${world.mark}`;
  const { page } = driver;
  try {
    await flow.given?.(world);
    const home = flow.home?.(world) ?? world.ids.org;
    await page.goto(`${BASE_URL}/console/${home ? `home?in=${encodeURIComponent(home)}` : ''}`);
    await driver.unlock();
    await follow(driver, world, flow.way);
    for (const [field, text] of Object.entries(flow.fill?.(world) ?? {})) await driver.type(page.locator(`main [name="f.${field}"]`), text);
    if (flow.preview) {
      await driver.button('Preview');
      await says(page, 'This is a preview: nothing was changed.');
    }
    if (world.mark === 'mouse') {
      await driver.button('Show as code');
      Object.assign(lines, await shown(page));
      if (flow.secret) await says(page, 'This request holds a secret, which is not written into a line.');
    }
    if (flow.confirm) await driver.type(page.locator('main [name=confirm]'), flow.confirm(world));
    await driver.button('Send');
    await says(page, 'Done.');
    if (flow.says) await says(page, flow.says);
  } catch (error) {
    throw new Error(`${what}: ${error.message}\n${page.url()}\n${await page.locator('main').innerText()}`);
  }
  await proved(flow, world);
}

/** Follows links from the home of an organization. */
async function follow(driver, world, [first, ...way]) {
  const named = (name) => (typeof name === 'function' ? name(world) : name);
  const main = driver.page.locator('main');
  await driver.link(driver.page.locator('nav.rail'), first);
  for (const step of way) {
    const [link, row] = Array.isArray(step) ? [step[1], named(step[0])] : [named(step)];
    await driver.link(row ? main.locator('tr', { hasText: row }) : main, link);
  }
}

async function says(page, text) {
  const main = await page.locator('main').innerText();
  if (!main.includes(text)) throw new Error(`the page does not say: ${text}`);
}

/** The lines that a form shows, by their caption. */
async function shown(page) {
  const figures = await page.locator('section[aria-labelledby=lines] figure').all();
  return Object.fromEntries(await Promise.all(figures.map(async (figure) => [
    await figure.locator('figcaption').textContent(), await figure.locator('pre').textContent(),
  ])));
}

/** Runs a line of a page in a shell, for the same resources of another world. */
async function pasted(flow, shown, [from, to]) {
  await flow.given?.(to);
  if (!shown) throw new Error(`${flow.name}: the form shows no line for ${to.mark}`);
  const line = translated(shown, from, to);
  const output = await to.server.shell(line);
  try {
    await proved(flow, to);
  } catch (error) {
    throw new Error(`${error.message}\n${line}\n${output}`);
  }
}

/** Compares what the API returns with what it should; what a server does later, until it has. */
async function proved(flow, world) {
  for (let tries = flow.isLater ? 100 : 1; ; tries -= 1) {
    const [is, wanted] = (await flow.proof(world)).map((value) => JSON.stringify(value));
    if (is === wanted || tries <= 1) {
      check(`${flow.name}, ${world.mark}`, is === wanted, `${is} is not ${wanted}`);
      return;
    }
    await new Promise((done) => { setTimeout(done, 100); });
  }
}
