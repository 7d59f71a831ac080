// The repository of Maven with the clients that people have: publish, install, choose of a range, snapshots, and what each of
// them shows where something is refused, as a golden table.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE                    its binary
//   PROVIDER                   provider.json of the identity provider
//   JAVA_CLIENTS               directory with the clients, and the plugins that they run with
//   JAVA_WHOLE=1               all versions of Maven, and Gradle, instead of the newest release of Maven
//   UPDATE_GOLDEN=1            write the table of what each client prints again; it is that of JAVA_WHOLE
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { call, check, checks, owned, refuseVulnerable } from '../lib.mjs';

const { BASE_URL, BOWLINE, JAVA_CLIENTS, JAVA_WHOLE, OPERATOR_TOKEN, UPDATE_GOLDEN } = process.env;
const here = dirname(fileURLToPath(import.meta.url));
const golden = join(here, 'golden.txt');
const host = new URL(BASE_URL).host;
const work = mkdtempSync(join(tmpdir(), 'java.'));
const rows = [];
let directories = 0;

/** Runs a program with nothing of this machine's settings. */
function run(command, args, cwd, env = {}) {
  const clean = { HOME: `${cwd}.home`, PATH: process.env.PATH, COLUMNS: '1000', NO_COLOR: '1', JAVA_HOME: process.env.JAVA_HOME ?? '', ...env };
  if (!clean.JAVA_HOME) delete clean.JAVA_HOME;
  const { status, stdout, stderr, error } = spawnSync(command, args, { env: clean, cwd, encoding: 'utf8', timeout: 180_000 });
  if (error) throw error;
  return { status, text: stdout + stderr };
}

/** Where packages are, and who asks. */
function repository(owner, group = '') {
  return { url: `${BASE_URL}/libraries/java/${group && `~${group}/`}`, user: owner.identity, password: owner.upstream };
}

/** A directory, and one for what a client keeps. */
function directory() {
  const path = join(work, `project-${(directories += 1)}`);
  mkdirSync(path, { recursive: true });
  return path;
}

/** A local repository that has the plugins, and nothing of the packages. */
function local() {
  const path = join(work, `local-${(directories += 1)}`);
  const from = join(JAVA_CLIENTS, 'repository');
  let copied = run('cp', ['-al', from, path], work);
  // There are no links from one file system to another.
  if (copied.status !== 0) {
    rmSync(path, { recursive: true, force: true });
    copied = run('cp', ['-a', from, path], work);
  }
  if (copied.status !== 0) throw new Error(copied.text);
  return path;
}

function settings(cwd, at) {
  const text = `<settings><mirrors><mirror><id>bowline</id><mirrorOf>*</mirrorOf><url>${at.url}</url></mirror></mirrors><servers><server><id>bowline</id><username>${at.user}</username><password>${at.password}</password></server></servers><profiles><profile><id>all</id><repositories><repository><id>central</id><url>${at.url}</url><snapshots><enabled>true</enabled><updatePolicy>always</updatePolicy></snapshots></repository></repositories></profile></profiles><activeProfiles><activeProfile>all</activeProfile></activeProfiles></settings>`;
  const path = join(cwd, 'settings.xml');
  writeFileSync(path, text);
  return path;
}

const parent = ({ artifact, version }) => `<parent><groupId>bwl.example</groupId><artifactId>${artifact}</artifactId><version>${version}</version><relativePath/></parent>`;
const dependency = ({ artifact, version }) => `<dependency><groupId>bwl.example</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`;
const pom = (artifact, version, more = '', group = 'bwl.example') => `<project><modelVersion>4.0.0</modelVersion><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version>${more}</project>`;

/** A version of Maven. */
class Maven {
  constructor(program) {
    this.program = program;
  }

  run(at, text, args, repository = local()) {
    const cwd = directory();
    writeFileSync(join(cwd, 'pom.xml'), text);
    const known = at.settings ?? settings(cwd, at);
    const env = at.env ?? {};
    const outcome = run(this.program, ['-B', '-ntp', '-s', known, `-Dmaven.repo.local=${repository}`, ...args], cwd, env);
    return { ...outcome, cwd, repository };
  }

  /** Publishes a version with a file of these bytes. */
  publish(at, artifact, version, bytes = `${artifact} ${version}`, more = '') {
    const cwd = directory();
    writeFileSync(join(cwd, 'a.jar'), bytes);
    writeFileSync(join(cwd, 'a.pom'), pom(artifact, version, more));
    const args = ['org.apache.maven.plugins:maven-deploy-plugin:3.1.4:deploy-file', `-Dfile=${join(cwd, 'a.jar')}`, `-DpomFile=${join(cwd, 'a.pom')}`, `-Durl=${at.url}`, '-DrepositoryId=bowline'];
    return this.run(at, pom('app', '1', '<packaging>pom</packaging>', 'bwl.app'), args);
  }

  /** Resolves dependencies of a new project. */
  install(at, dependencies, repository) {
    const more = `<packaging>pom</packaging><dependencies>${dependencies.map(dependency).join('')}</dependencies>`;
    return this.run(at, pom('app', '1', more, 'bwl.app'), ['org.apache.maven.plugins:maven-dependency-plugin:3.8.1:resolve'], repository);
  }

  /** Reads a project whose parent is a package. */
  inherit(at, of) {
    return this.run(at, `<project><modelVersion>4.0.0</modelVersion>${parent(of)}<artifactId>app</artifactId><packaging>pom</packaging></project>`, ['validate']);
  }
}

/** The bytes of the file of a version that a local repository has. */
function installed({ repository }, artifact, version, file = `${artifact}-${version}.jar`) {
  const path = join(repository, 'bwl/example', artifact, version, file);
  return existsSync(path) ? readFileSync(path, 'utf8') : 'nothing';
}

/** How clients show what a server answered. */
const marks = [/RFC9457Payload \{.*?instance=null\}/, /[Ss]tatus: \d+( (?!->)[^\n]*?(?= -> | and 'parent|$))?/m, /Received status code [^\n]*/, /Could not find artifact \S+/, /too many authentication attempts/, /No versions available for \S+/];

/** What a client showed first of an answer, without what differs from run to run. */
function shown(text) {
  const plain = text.replaceAll(/\x1b\[[0-9;]*m/g, '').replaceAll(BASE_URL, 'BASE').replaceAll(host, 'HOST').replaceAll(/[0-9a-f]{40}(\/[0-9a-f]{16})*/g, 'UID').replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
  return marks.map((mark) => plain.match(mark)?.[0]).find(Boolean) ?? 'nothing';
}

function row(what, client, outcome) {
  rows.push(`${what} | ${client} | ${outcome.status === 0 ? 'succeeds' : 'fails'} | ${shown(outcome.text)}`);
}

const newest = 'Maven 3.9.16';
const clients = { [newest]: new Maven(join(JAVA_CLIENTS, 'apache-maven-3.9.16/bin/mvn')) };
if (JAVA_WHOLE) {
  clients['Maven 3.8.7'] = new Maven(join(JAVA_CLIENTS, 'apache-maven-3.8.7/bin/mvn'));
  clients['Maven 4.0.0-rc-5'] = new Maven(join(JAVA_CLIENTS, 'apache-maven-4.0.0-rc-5/bin/mvn'));
}

/** Gradle resolves a dependency by an init script alone. */
function gradle(home, env, { artifact, version }) {
  const cwd = directory();
  writeFileSync(join(cwd, 'settings.gradle'), "rootProject.name = 'app'\n");
  writeFileSync(join(cwd, 'build.gradle'), `repositories { maven { url 'http://127.0.0.1:9/nowhere' } }\nconfigurations { wanted }\ndependencies { wanted 'bwl.example:${artifact}:${version}' }\ntask show { doLast { configurations.wanted.files.each { println "got \${it.name} \${it.text}" } } }\n`);
  return run('gradle', ['--no-daemon', '-q', '--gradle-user-home', join(home, '.gradle'), 'show'], cwd, env);
}

try {
  const owner = await owned('beans', 'walk-java');
  const stranger = await owned('otherbeans', 'walk-java-stranger');
  const own = repository(owner);

  // ---- publish, and publish again --------------------------------------------------------------------
  for (const [number, [client, maven]] of Object.entries(clients).entries()) {
    const published = maven.publish(own, `by-maven-${number}`, '1.0');
    check(`${client} publishes`, published.status === 0, published.text);
    const again = maven.publish(own, `by-maven-${number}`, '1.0', 'other bytes');
    check(`${client} does not publish a version again`, again.status !== 0, again.text);
    row('publish again', client, again);
    const wrong = maven.publish({ ...own, password: 'wrong' }, `by-maven-${number}`, '1.1');
    check(`${client} publishes nothing with a wrong token`, wrong.status !== 0, wrong.text);
    row('publish with a wrong token', client, wrong);
    for (const build of [1, 2]) {
      const snapshot = maven.publish(own, `by-maven-${number}`, '3-SNAPSHOT', `build ${build}`);
      check(`${client} publishes build ${build} of a snapshot`, snapshot.status === 0, snapshot.text);
    }
    const outcome = maven.install(own, [{ artifact: `by-maven-${number}`, version: '3-SNAPSHOT' }]);
    check(`${client} installs the newest build`, outcome.status === 0 && installed(outcome, `by-maven-${number}`, '3-SNAPSHOT') === 'build 2', outcome.text);
  }
  const [maven] = [clients[newest]];
  for (const version of ['1.0', '1.1', '1.2']) check(`Maven publishes leaf ${version}`, maven.publish(own, 'leaf', version).status === 0);
  const branch = maven.publish(own, 'branch', '1.0', 'branch', `<dependencies>${dependency({ artifact: 'leaf', version: '1.0' })}</dependencies>`);
  check('Maven publishes what depends on leaf', branch.status === 0, branch.text);

  // ---- install ---------------------------------------------------------------------------------------
  for (const [client, maven] of Object.entries(clients)) {
    const outcome = maven.install(own, [{ artifact: 'branch', version: '1.0' }, { artifact: 'by-maven-0', version: '[1.0,2.0)' }]);
    check(`${client} installs a version, what it depends on, and one of a range`, outcome.status === 0 && installed(outcome, 'leaf', '1.0') === 'leaf 1.0' && installed(outcome, 'by-maven-0', '1.0') === 'by-maven-0 1.0', outcome.text);
    for (const [what, at, artifact] of [['with a wrong token', { ...own, password: 'wrong' }, 'leaf'], ['of another organization', repository(stranger, owner.organization), 'leaf'], ['that is not there', own, 'absent']]) {
      const outcome = maven.install(at, [{ artifact, version: '1.0' }]);
      check(`${client} installs nothing ${what}`, outcome.status !== 0, outcome.text);
      row(`install ${what}`, client, outcome);
    }
  }

  // ---- configured by the command line, with the account in the environment ------------------------------
  const home = join(work, 'configured');
  mkdirSync(home);
  for (const client of ['maven', 'gradle']) {
    const written = run(BOWLINE, ['libraries', 'configure', client, '--api', BASE_URL, '--root', home, '--write'], work);
    check(`the file of ${client} is written`, written.status === 0, written.text);
  }
  const env = { BOWLINE_MAVEN_USERNAME: owner.identity, BOWLINE_MAVEN_PASSWORD: owner.upstream };
  const configured = { ...own, settings: join(home, '.m2/settings.xml'), env };
  for (const [client, maven] of Object.entries(clients)) {
    const outcome = maven.install(configured, [{ artifact: 'leaf', version: '1.1' }]);
    check(`${client} installs by its file`, outcome.status === 0 && installed(outcome, 'leaf', '1.1') === 'leaf 1.1', outcome.text);
  }

  // ---- from an upstream: the repository of another organization ------------------------------------------
  const outside = await owned('outbeans', 'walk-java-outside');
  for (const version of ['1.0', '1.1']) {
    check(`another organization publishes outer ${version}`, maven.publish(repository(outside), 'outer', version).status === 0);
  }
  const upstream = { name: 'outside', ecosystem: 'JAVA', url: repository(outside, outside.organization).url, username: outside.identity, password: outside.upstream };
  await call('POST', `/packageupstreams/v1/organizations/${owner.organization}:setUpstream`, { upstream });
  for (const [client, maven] of Object.entries(clients)) {
    const outcome = maven.install(own, [{ artifact: 'outer', version: '[1.0,)' }, { artifact: 'leaf', version: '1.0' }]);
    check(`${client} installs from an upstream beside own packages`, outcome.status === 0 && installed(outcome, 'outer', '1.1') === 'outer 1.1', outcome.text);
  }
  if (JAVA_WHOLE) {
    const outcome = gradle(home, env, { artifact: 'outer', version: '1.+' });
    check('Gradle installs by its init script', outcome.status === 0 && outcome.text.includes('got outer-1.1.jar outer 1.1'), outcome.text);
  }

  // ---- what a policy withholds -------------------------------------------------------------------------
  const policy = await call('POST', `/libraries/v1/policies/${owner.organization}`, { name: 'no-new', blockList: [{ purl: 'pkg:maven/bwl.example/leaf@1.2' }, { purl: 'pkg:maven/bwl.example/by-maven-0' }] });
  await call('POST', `/libraries/v1/policy-bindings/${owner.organization}`, { policy: policy.id, ecosystem: 'JAVA', mode: 'LIBRARY_POLICY_BINDING_MODE_ENFORCED' });
  for (const [client, maven] of Object.entries(clients)) {
    const range = maven.install(own, [{ artifact: 'leaf', version: '[1.0,2.0)' }]);
    check(`${client} passes over a blocked version`, range.status === 0 && installed(range, 'leaf', '1.1') === 'leaf 1.1', range.text);
    for (const [what, of] of [['blocked version', { artifact: 'leaf', version: '1.2' }], ['blocked package', { artifact: 'by-maven-0', version: '1.0' }], ['range of a blocked package', { artifact: 'by-maven-0', version: '[1.0,2.0)' }], ['young version', { artifact: 'outer', version: '1.1' }]]) {
      const outcome = maven.install(own, [of]);
      check(`${client} installs no ${what}`, outcome.status !== 0, outcome.text);
      row(`install a ${what}`, client, outcome);
    }
    const inherited = maven.inherit(own, { artifact: 'leaf', version: '1.2' });
    check(`${client} inherits from no blocked version`, inherited.status !== 0, inherited.text);
    row('inherit from a blocked version', client, inherited);
  }
  if (JAVA_WHOLE) {
    const outcome = gradle(home, env, { artifact: 'leaf', version: '1.2' });
    check('Gradle installs no blocked version', outcome.status !== 0, outcome.text);
    row('install a blocked version', 'Gradle 4.4.1', outcome);
  }
  const kept = local();
  check('Maven installs no young version', maven.install(own, [{ artifact: 'outer', version: '1.0' }], kept).status !== 0);
  await call('PUT', `/libraries/v1/policies/${policy.id}`, { name: 'no-new', cooldownDays: 0 });
  const later = maven.install(own, [{ artifact: 'outer', version: '1.0' }], kept);
  check('Maven asks again once there is no cooldown', later.status === 0 && installed(later, 'outer', '1.0') === 'outer 1.0', later.text);

  await call('POST', `/packagefreezes/v1/organizations/${owner.organization}:freeze`, { cutoffTime: '2020-01-01T00:00:00Z', justification: 'a worm is about' });
  for (const [client, maven] of Object.entries(clients)) {
    const frozen = maven.install(own, [{ artifact: 'outer', version: '1.1' }]);
    check(`${client} installs no frozen version`, frozen.status !== 0, frozen.text);
    row('install a frozen version', client, frozen);
    const ours = maven.install(own, [{ artifact: 'leaf', version: '1.0' }]);
    check(`${client} installs own packages during a freeze`, ours.status === 0, ours.text);
  }
  await call('POST', `/packagefreezes/v1/organizations/${owner.organization}:liftFreeze`, {});

  await refuseVulnerable(policy.id, 'Maven', 'bwl.example:outer', '1.1');
  for (const [client, maven] of Object.entries(clients)) {
    const fixed = maven.install(own, [{ artifact: 'outer', version: '1.1' }]);
    check(`${client} installs the fixed version`, fixed.status === 0, fixed.text);
    const vulnerable = maven.install(own, [{ artifact: 'outer', version: '1.0' }]);
    check(`${client} installs no vulnerable version`, vulnerable.status !== 0, vulnerable.text);
    row('install a vulnerable version', client, vulnerable);
  }

  const lock = join(work, 'gradle.lockfile');
  writeFileSync(lock, 'bwl.example:outer:1.1=runtimeClasspath\nempty=\n');
  await call('PUT', `/libraries/v1/policies/${policy.id}`, { name: 'no-new', cooldownDays: 7 });
  const token = join(work, 'operator.token');
  writeFileSync(token, OPERATOR_TOKEN, { mode: 0o600 });
  const found = run(BOWLINE, ['libraries', 'check', lock, '--organization', owner.organization, '--api', BASE_URL, '--token-file', token], work);
  check('what a policy refuses is found in a lock file of Gradle', found.status === 1 && found.text.includes('pkg:maven/bwl.example/outer@1.1') && found.text.includes('COOLDOWN'), found.text);
  check('Maven shows why', rows.filter((one) => /^install a (blocked|young) version \| Maven/.test(one)).every((one) => one.includes('Blocked by policy no-new')), rows.join('\n'));

  rows.sort();
  if (UPDATE_GOLDEN && JAVA_WHOLE) writeFileSync(golden, `${rows.join('\n')}\n`);
  const known = readFileSync(golden, 'utf8').trim().split('\n');
  check('what clients print is in the golden table', rows.every((line) => known.includes(line)) && (!JAVA_WHOLE || known.length === rows.length), rows.join('\n'));
  console.log(`\npackages-java: ${checks()} checks passed`);
} catch (error) {
  console.error(`packages-java: FAILED after ${checks()} checks: ${error.stack}`);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
