// Persons beside the operator: an identity provider where any name signs in, and what these persons do themselves.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { World } from './world.mjs';

const { BOWLINE } = process.env;
const PROVIDER = fileURLToPath(new URL('../../browser/people.mjs', import.meta.url));

/** The identity provider of all servers; `person` signs someone in on the command line, `enter` in a browser. */
export class People {
  /** Starts the provider, and tells the servers of it; each gets an organization of the domain of its people. */
  static async start(servers, browser, directory) {
    const callbacks = servers.map((server) => `${server.url}/oauth/callback`);
    const child = spawn('node', [PROVIDER, directory, ...callbacks], { stdio: 'ignore' });
    process.once('exit', () => child.kill());
    const file = path.join(directory, 'people.json');
    for (let tries = 0; !existsSync(file); tries += 1) {
      if (tries === 300) throw new Error('the identity provider did not start');
      await new Promise((done) => { setTimeout(done, 100); });
    }
    const provider = JSON.parse(readFileSync(file, 'utf8'));
    const secret = path.join(directory, 'secret');
    writeFileSync(secret, provider.clientSecret, { mode: 0o600 });
    const companies = new Map();
    for (const server of servers) {
      execFileSync(BOWLINE, ['operator', 'providers', 'add', 'company', '--data-dir', server.data, '--label', 'Example Company',
        '--issuer', provider.issuer, '--client-id', provider.clientId, '--client-secret-file', secret, '--scopes', 'email,profile']);
      const body = { name: 'example.com', verified: true, kind: 'ORG_KIND_CUSTOMER' };
      companies.set(server, (await new World(server, '').post('/iam/v2/groups', body)).uid);
    }
    return Object.assign(new People(), { child, provider, companies, browser, directory });
  }

  stop() {
    this.child.kill();
  }

  /** Types a name at the provider and confirms. */
  async signIn(page, name) {
    const { issuer } = this.provider;
    if (!page.url().startsWith(issuer)) await page.click('text=Continue with Example Company');
    await page.fill('input[name=login]', name);
    await page.fill('input[name=password]', 'anything');
    await page.click('button[type=submit]');
    await page.waitForURL((url) => !url.href.startsWith(issuer) || url.pathname.startsWith('/interaction/'));
    if (page.url().startsWith(issuer)) await page.click('button[type=submit]');
    await page.waitForURL((url) => !url.href.startsWith(issuer));
    await page.click('button:has-text("Continue")');
  }

  /** A person who signed in with the command line, as a world that has nothing yet. */
  async person(server, mark) {
    const home = mkdtempSync(path.join(this.directory, 'home.'));
    const token = await this.login(server, mark, home);
    const world = new World({ ...server, token, shell: server.shellOf?.({ HOME: home }) }, mark);
    world.company = this.companies.get(server);
    world.operator = server;
    world.again = () => this.login(server, mark, mkdtempSync(path.join(this.directory, 'home.')));
    return world;
  }

  /** Signs a person in with the command line, which keeps its files in this directory; their token. */
  async login(server, name, home) {
    const child = spawn(BOWLINE, ['auth', 'login', '--api', server.url], { env: { HOME: home, PATH: process.env.PATH } });
    process.once('exit', () => child.kill());
    let said = '';
    const url = new Promise((found) => {
      child.stderr.on('data', (data) => {
        said += data;
        const [match] = said.match(/https?:\/\/\S+(?=\n)/) ?? [];
        if (match) found(match);
      });
    });
    const ended = new Promise((done) => { child.once('exit', done); });
    const context = await this.browser.newContext({ javaScriptEnabled: false });
    context.setDefaultTimeout(90_000);
    const page = await context.newPage();
    await page.goto(await url);
    await this.signIn(page, name);
    const code = await ended;
    await context.close();
    if (code !== 0) throw new Error(`the sign-in ended with ${code}: ${said}`);
    const env = { HOME: home, PATH: process.env.PATH };
    return execFileSync(BOWLINE, ['auth', 'token', '--api', server.url], { env, encoding: 'utf8' }).trim();
  }

  /** What a browser keeps of a person who signed in to the console. */
  async state(server, name) {
    const context = await this.browser.newContext({ javaScriptEnabled: false });
    context.setDefaultTimeout(90_000);
    const page = await context.newPage();
    await page.goto(`${server.url}/console/`);
    await page.click('a:has-text("Sign in")');
    await this.signIn(page, name);
    await page.waitForURL(`${server.url}/console/`);
    const state = await context.storageState();
    await context.close();
    return state;
  }
}

const own = (w) => w.get('/people/v1/preferences');
const sessions = async (w) => (await w.get('/people/v1/sessions')).sessions;
const requests = async (w) => {
  const { requests: found } = await new World(w.operator, w.mark).get(`/iam/v1/accessRequests/${w.company}`);
  return found.map((one) => one.email);
};

export const persons = [
  {
    name: 'preferences are changed',
    as: 'person',
    way: ['Your account', 'Edit your preferences'],
    fill: () => ({ 'preferences.theme': 'THEME_DARK', 'preferences.time_zone': 'Europe/Oslo' }),
    proof: async (w) => {
      const { theme, timeZone } = await own(w);
      return [[theme, timeZone], ['THEME_DARK', 'Europe/Oslo']];
    },
  },
  {
    name: 'a session is ended',
    given: async (w) => {
      const before = new Set((await sessions(w)).map((one) => one.id));
      await w.again();
      w.ids.session = (await sessions(w)).find((one) => !before.has(one.id)).id;
    },
    as: 'person',
    way: ['Your account', [(w) => w.ids.session.slice(0, 8), 'End']],
    confirm: (w) => w.ids.session,
    proof: async (w) => [(await sessions(w)).some((one) => one.id === w.ids.session), false],
  },
  {
    name: 'a person asks for access',
    given: async (w) => { w.ids.company = w.company; },
    as: 'person',
    way: ['Organizations', 'Ask its owners for access'],
    proof: async (w) => [(await requests(w)).includes(`${w.mark}@example.com`), true],
  },
];

/** The person of a world of the operator. */
const person = async (w) => {
  const [, claims] = w.person.server.token.split('.');
  w.ids.person = JSON.parse(Buffer.from(claims, 'base64url')).sub;
};
const operators = async (w) => {
  const { operators: found } = await w.get('/operator/v1/operators');
  return found.filter((one) => one.identity === w.ids.person).map((one) => one.role);
};

/** What the operator does about persons. */
export const answers = [
  {
    name: 'a person who asked gets a role',
    given: async (w) => {
      await person(w);
      w.ids.company = w.person.company;
      const asked = await w.person.answer('POST', `/iam/v2/groups/${w.ids.company}:requestGroupAccess`, {});
      if (!asked.ok && asked.status !== 429) throw new Error(await asked.text());
    },
    home: (w) => w.ids.company,
    way: ['Invitations', [(w) => `${w.mark}@example.com`, 'Give a role']],
    fill: (w) => ({ role: w.ids['role viewer'] }),
    proof: async (w) => {
      const { roleBindings } = await w.get(`/iam/v2/roleBindings?identity=${w.ids.person}`);
      return [roleBindings.map((one) => [one.group.uid, one.role.name]), [[w.ids.company, 'viewer']]];
    },
  },
  {
    name: 'a person becomes an operator',
    given: person,
    way: ['The server', 'Make someone an operator'],
    fill: (w) => ({ identity: w.ids.person, role: 'OPERATOR_ROLE_VIEWER' }),
    proof: async (w) => [await operators(w), ['OPERATOR_ROLE_VIEWER']],
  },
  {
    name: 'a person is an operator no longer',
    given: async (w) => {
      await person(w);
      const granted = await w.answer('POST', '/operator/v1/operators', { identity: w.ids.person, role: 'OPERATOR_ROLE_VIEWER' });
      if (!granted.ok && granted.status !== 409) throw new Error(await granted.text());
    },
    way: ['The server', [(w) => `${w.mark}@example.com`, 'Remove']],
    confirm: (w) => w.ids.person,
    proof: async (w) => [await operators(w), []],
  },
];

/** What ends the sessions that flows of persons need, and so comes last. */
export const endings = [
  {
    name: 'all other sessions are ended',
    as: 'person',
    given: async (w) => { w.other = new World({ ...w.server, token: await w.again() }, w.mark); },
    way: ['Your account', 'End all other sessions'],
    confirm: () => 'Sessions.EndAllSessions',
    proof: async (w) => [await w.other.status('/people/v1/sessions'), 401],
  },
];
