// Terraform and its provider, unmodified, against the server: apply, plan again (empty), change in place, plan again,
// import into an empty state (empty plan), bring the organization to another server with `bowline export` and `bowline
// apply` and import it there (empty plan), destroy.
//
//   BASE_URL, OPERATOR_TOKEN   the server
//   BOWLINE                    its binary, which also runs the other server
//   TERRAFORM, PROVIDER_DIR    the binary, and the directory that holds the provider's binary
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { call, check, checks, owned } from '../lib.mjs';
import { another, bowline, finder } from './elsewhere.mjs';

const directoryOfSuite = dirname(fileURLToPath(import.meta.url));
const { BASE_URL, OPERATOR_TOKEN, TERRAFORM, PROVIDER_DIR } = process.env;
const work = mkdtempSync(join(tmpdir(), 'terraform.'));

// ---- an owner of an organization, whose token lies where the provider looks ---------------------

const name = `terraform ${process.pid}`;
const { organization, identity, upstream } = await owned(name, 'walk-terraform');
const exchanged = await fetch(`${BASE_URL}/sts/exchange`, {
  method: 'POST',
  headers: { authorization: `Bearer ${upstream}` },
  body: new URLSearchParams({ aud: BASE_URL, identity }),
});
const { token } = await exchanged.json();
function signIn(base, token) {
  const cache = join(work, 'cache', 'chainguard', base.replaceAll('/', '-'));
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(cache, 'oidc-token'), token, { mode: 0o600 });
}
signIn(BASE_URL, token);

// ---- terraform ----------------------------------------------------------------------------------

writeFileSync(join(work, 'terraformrc'), `provider_installation {
  dev_overrides { "chainguard-dev/chainguard" = ${JSON.stringify(PROVIDER_DIR)} }
  direct {}
}\n`);
let variables = {
  TF_VAR_api: BASE_URL,
  TF_VAR_organization: organization,
  TF_VAR_expiration: new Date(Date.now() + 20 * 86400e3).toISOString().replace(/\.\d+Z/, 'Z'),
};

function terraform(directory, stage, ...args) {
  if (stage) copyFileSync(join(directoryOfSuite, `stage-${stage}`, 'changing.tf'), join(directory, 'changing.tf'));
  const result = spawnSync(TERRAFORM, args, {
    cwd: directory,
    encoding: 'utf8',
    timeout: 300e3,
    env: {
      PATH: process.env.PATH, HOME: work, XDG_CACHE_HOME: join(work, 'cache'), TF_CLI_CONFIG_FILE: join(work, 'terraformrc'),
      CHECKPOINT_DISABLE: '1', TF_IN_AUTOMATION: '1', TF_VAR_stage: String(stage || 1), TF_VAR_client_secret: 'secret', ...variables,
    },
  });
  return { status: result.status, text: `${result.stdout}\n${result.stderr}` };
}

function directory(name) {
  const path = join(work, name);
  mkdirSync(path);
  for (const file of ['main.tf', 'registry.tf']) copyFileSync(join(directoryOfSuite, file), join(path, file));
  return path;
}

function planned(where, stage, what) {
  const plan = terraform(where, stage, 'plan', '-input=false', '-no-color', '-detailed-exitcode');
  check(what, plan.status === 0, plan.text);
}

/** Applies what the console prints, in a group of its own, and removes it again. */
async function printed(state) {
  const id = (type, name) => state.resources.find((one) => one.type === type && one.name === name).instances[0].attributes.id;
  const parent = await call('POST', `/iam/v2/groups/${organization}`, { name: 'printed parent' });
  const values = {
    PARENT: parent.uid, ROLE: state.outputs.viewer.value, IDENTITY: id('chainguard_identity', 'workload'), REPO: id('chainguard_image_repo', 'app'),
  };
  const where = join(work, 'printed');
  mkdirSync(where);
  const text = readFileSync(join(directoryOfSuite, 'printed.tf'), 'utf8');
  writeFileSync(join(where, 'printed.tf'), text.replace(/"(PARENT|ROLE|IDENTITY|REPO)"/g, (_, word) => JSON.stringify(values[word])));
  writeFileSync(join(where, 'provider.tf'), `terraform {
  required_providers { chainguard = { source = "chainguard-dev/chainguard" } }
}
provider "chainguard" {
  console_api = ${JSON.stringify(BASE_URL)}
  login_options { disabled = true }
}\n`);
  const applied = terraform(where, 0, 'apply', '-auto-approve', '-input=false', '-no-color');
  check('what the console prints is applied', applied.status === 0, applied.text);
  planned(where, 0, 'the plan after it is empty, too');
  const made = JSON.parse(readFileSync(join(where, 'terraform.tfstate'), 'utf8')).resources;
  check('every printed resource is in the state', made.length === text.match(/^resource /gm).length, `${made.length}`);
  // The provider refuses to delete repositories and tags.
  const kept = made.filter((one) => /^chainguard_image_(repo|tag)$/.test(one.type));
  const forgotten = terraform(where, 0, 'state', 'rm', ...kept.map((one) => `${one.type}.${one.name}`));
  check('printed repositories and tags are forgotten', forgotten.status === 0, forgotten.text);
  for (const repo of kept.filter((one) => one.type === 'chainguard_image_repo')) {
    await call('DELETE', `/registry/v2/repos/${repo.instances[0].attributes.id}`);
  }
  const destroyed = terraform(where, 0, 'destroy', '-auto-approve', '-input=false', '-no-color');
  check('what was printed is destroyed', destroyed.status === 0, destroyed.text);
  await call('DELETE', `/iam/v2/groups/${parent.uid}`);
}

try {
  const main = directory('main');
  const applied = terraform(main, 1, 'apply', '-auto-approve', '-input=false', '-no-color');
  check('everything is applied', applied.status === 0, applied.text);
  planned(main, 1, 'the plan after it is empty');

  await printed(JSON.parse(readFileSync(join(main, 'terraform.tfstate'), 'utf8')));

  const changed = terraform(main, 2, 'apply', '-auto-approve', '-input=false', '-no-color');
  check('everything is changed', changed.status === 0, changed.text);
  planned(main, 2, 'the plan after that is empty');

  const state = JSON.parse(readFileSync(join(main, 'terraform.tfstate'), 'utf8'));
  check('the data sources read the repositories',
    JSON.stringify([state.outputs.app.value, state.outputs.repos.value]) === '[["app-two"],["app-two","mirror"]]', JSON.stringify(state.outputs));
  const resources = state.resources.filter((resource) => resource.mode === 'managed');
  check('every resource is in the state', resources.length === 17, `${resources.length}`);

  // The provider itself reads nothing of an invitation but that it exists, and no API gives a secret back. Nor does it
  // read the synchronization of a repository that it has not made.
  const importable = (name, ...left) => {
    const fresh = directory(name);
    for (const file of ['main.tf', 'registry.tf']) {
      let text = readFileSync(join(fresh, file), 'utf8')
        .replace(/(resource "chainguard_identity_provider" "sso" {)/, '$1\n  lifecycle { ignore_changes = [oidc.client_secret] }')
        .replace(/(resource "chainguard_image_repo" "mirror" {)/, '$1\n  lifecycle { ignore_changes = [sync_config] }');
      for (const type of left) text = text.replace(new RegExp(`resource "${type}"[^]*?\n}\n`), '');
      writeFileSync(join(fresh, file), text);
    }
    return { fresh, resources: resources.filter((one) => !left.includes(one.type)) };
  };
  const here = importable('import', 'chainguard_group_invite');
  for (const { type, name, instances } of here.resources) {
    const imported = terraform(here.fresh, 2, 'import', '-input=false', '-no-color', `${type}.${name}`, instances[0].attributes.id);
    check(`${type}.${name} is imported`, imported.status === 0, imported.text);
  }
  planned(here.fresh, 2, 'the plan after the imports is empty');

  // Tags and deployments are no part of an organization's files.
  const there = importable('elsewhere', 'chainguard_group_invite', 'chainguard_image_tag', 'chainguard_image_repo_deployment');
  const other = await another(work);
  const former = variables;
  try {
    const files = join(work, 'files');
    const exported = bowline(work, BASE_URL, OPERATOR_TOKEN, 'export', organization, '--directory', files);
    check('the organization is exported', exported.status === 0, exported.text);
    const brought = bowline(work, other.base, other.token, 'apply', '-f', files, '--yes');
    check('the files are applied to another server', brought.status === 0, brought.text);
    const same = bowline(work, other.base, other.token, 'diff', '-f', files, '--prune');
    check('nothing differs from the files there', same.status === 0, same.text);
    const moved = await finder(other, name);
    signIn(other.base, other.token);
    variables = { ...former, TF_VAR_api: other.base, TF_VAR_organization: moved.organization };
    for (const { type, name, instances } of there.resources) {
      const id = await moved.find(type, instances[0].attributes.name);
      const imported = terraform(there.fresh, 2, 'import', '-input=false', '-no-color', `${type}.${name}`, id);
      check(`${type}.${name} is imported from the other server`, imported.status === 0, imported.text);
    }
    planned(there.fresh, 2, 'the plan against the other server is empty');
  } finally {
    variables = former;
    await other.stop();
  }

  const withdrawn = terraform(main, 2, 'destroy', '-auto-approve', '-input=false', '-no-color', '-target=chainguard_image_repo_deployment.app');
  check('the deployment is destroyed', withdrawn.status === 0, withdrawn.text);
  // The provider refuses to delete repositories and tags.
  const kept = resources.filter((one) => /^chainguard_image_(repo|tag)$/.test(one.type));
  const forgotten = terraform(main, 2, 'state', 'rm', ...kept.map((one) => `${one.type}.${one.name}`));
  check('repositories and tags are forgotten', forgotten.status === 0, forgotten.text);
  for (const repo of kept.filter((one) => one.type === 'chainguard_image_repo')) {
    await call('DELETE', `/registry/v2/repos/${repo.instances[0].attributes.id}`);
  }
  const destroyed = terraform(main, 2, 'destroy', '-auto-approve', '-input=false', '-no-color');
  check('everything is destroyed', destroyed.status === 0, destroyed.text);
  const left = await call('GET', `/iam/v2/groups?uidp.descendantsOf=${organization}`);
  check('nothing is left', left.groups.length === 0, JSON.stringify(left));
  console.log(`terraform: ${checks()} checks passed`);
} catch (error) {
  console.error(`terraform: FAILED after ${checks()} checks: ${error.message}`);
  process.exitCode = 1;
} finally {
  if (process.env.KEEP) console.log(`kept ${work}`);
  else rmSync(work, { recursive: true, force: true });
}
