// What suites that run foreign programs share: checks, calls as the operator, and an owner of an organization.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const { BASE_URL, OPERATOR_TOKEN, PROVIDER } = process.env;
let count = 0;

/** Ends the suite unless the condition holds; `detail` says what was there instead. */
export function check(what, condition, detail = '') {
  count += 1;
  if (!condition) throw new Error(`${what}\n${detail}`);
  console.log(`  ok   ${what}`);
}

/** How many checks there were. */
export const checks = () => count;

/** The answer to a call of the operator; anything but success ends the suite. */
export async function call(verb, path, body) {
  const answer = await fetch(BASE_URL + path, {
    method: verb,
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${verb} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : {};
}

/** A new organization, an identity that owns it, and the token that assumes the identity. */
export async function owned(name, subject) {
  const organization = (await call('POST', '/iam/v2/groups', { name })).uid;
  const { issuer } = JSON.parse(readFileSync(PROVIDER, 'utf8'));
  const identity = (await call('POST', `/iam/v2/identities/${organization}`, { name: 'owner', claimMatch: { issuer, subject } })).uid;
  const owner = (await call('GET', '/iam/v2/roles?name=owner')).roles[0].uid;
  await call('POST', `/iam/v2/roleBindings/${organization}`, { identityUid: identity, roleUid: owner });
  const upstream = execFileSync('node', [join(here, 'walk/token.mjs'), subject], { encoding: 'utf8' }).trim();
  return { organization, identity, upstream };
}

/** Has every version of a package below a fixed one be vulnerable, and a policy refuse that. */
export async function refuseVulnerable(policy, ecosystem, name, fixed) {
  const begun = await call('POST', '/feeds/bowline/v1/imports', { source: `suite-${ecosystem.toLowerCase()}`, licence: 'CC0-1.0', url: 'https://records.example', full: true });
  const record = {
    id: `SUITE-${ecosystem}-1`,
    modified: new Date(Date.now() - 60_000).toISOString().replace(/\.\d+Z/, 'Z'),
    severity: [{ type: 'CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H' }],
    affected: [{ package: { ecosystem, name }, ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }] }],
  };
  await call('POST', `/feeds/bowline/v1/imports/${begun.uid}/records`, { records: [Buffer.from(JSON.stringify(record)).toString('base64')] });
  await call('POST', `/feeds/bowline/v1/imports/${begun.uid}:commit`, {});
  await call('POST', `/policyvulnerabilities/v1/policies/${policy}:setRule`, { rule: { minimumSeverity: 'VULNERABILITY_SEVERITY_CRITICAL' } });
}
