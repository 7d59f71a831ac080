// A flow of each domain with a client whose types come from the documents (openapi-typescript, openapi-fetch). What the
// compiler refuses here is part of the check: bodies that lack a required member do not compile.
import createClient from 'openapi-fetch';
import type { components as V2Parts, paths as V2 } from './v2.js';
import type { paths as V1 } from './v1.js';

type Status = V2Parts['schemas']['google.rpc.Status'];
const { BASE_URL, OPERATOR_TOKEN } = process.env;
const options = { baseUrl: BASE_URL, headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } };
const v1 = createClient<V1>(options);
const v2 = createClient<V2>(options);

/** The data of a call that succeeded. */
function ok<T>({ data, error, response }: { data?: T; error?: unknown; response: Response }): T {
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${JSON.stringify(error)}`);
  return data as T;
}

function same(actual: unknown, expected: unknown, what: string): void {
  if (actual !== expected) throw new Error(`${what}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
}

/** The error of a call that was rejected, in the type that the documents give it. */
function rejected({ error, response }: { error?: Status; response: Response }, status: number, code: number): void {
  same(response.status, status, `status of ${response.url}`);
  same(error?.code, code, `code of ${response.url}`);
  same(typeof error?.message, 'string', `message of ${response.url}`);
  same(error?.details.every((detail) => typeof detail['@type'] === 'string'), true, `details of ${response.url}`);
}

// Identity and access: an organization, which has no parent, and a group below it.
const organization = ok(await v2.POST('/iam/v2/groups', { body: { name: 'typed' } }));
const parent = organization.uid;
const group = ok(await v2.POST('/iam/v2/groups/{uid}', { params: { path: { uid: parent } }, body: { name: 'team' } }));
const ofGroup = { path: { uid: group.uid } };
const changed = ok(
  await v2.PATCH('/iam/v2/groups/{uid}', {
    params: { ...ofGroup, query: { updateMask: 'description' } },
    body: { description: 'A team' },
  }),
);
same(changed.description, 'A team', 'description of the group');
same(ok(await v2.GET('/iam/v2/groups/{uid}', { params: ofGroup })).name, 'team', 'name of the group');
const groups = ok(await v2.GET('/iam/v2/groups', { params: { query: { 'uidp.descendantsOf': parent } } }));
same(groups.groups.map((found) => found.uid).join(), group.uid, 'groups below the organization');
const byFirst = ok(await v1.GET('/iam/v1/groups', { params: { query: { id: group.uid } } }));
same(byFirst.items.map((found) => found.description).join(), 'A team', 'the group in v1');
ok(await v2.DELETE('/iam/v2/groups/{uid}', { params: ofGroup }));
rejected(await v2.GET('/iam/v2/groups/{uid}', { params: ofGroup }), 404, 5);
// @ts-expect-error A group without a name does not compile.
rejected(await v2.POST('/iam/v2/groups', { body: { description: 'nameless' } }), 400, 3);
rejected(await createClient<V2>({ baseUrl: BASE_URL }).GET('/iam/v2/groups'), 401, 16);

// Events: a subscription.
const subscription = ok(
  await v2.POST('/events/v2/subscriptions/{uid}', {
    params: { path: { uid: parent } },
    body: { sink: 'https://events.example.com/typed' },
  }),
);
const ofSubscription = { path: { uid: subscription.uid } };
const subscribed = ok(await v2.GET('/events/v2/subscriptions/{uid}', { params: ofSubscription }));
same(subscribed.sink, 'https://events.example.com/typed', 'sink of the subscription');
const subscriptions = ok(await v1.GET('/events/v1/subscriptions', { params: { query: { id: subscription.uid } } }));
same(subscriptions.items.length, 1, 'number of subscriptions');
ok(await v2.DELETE('/events/v2/subscriptions/{uid}', { params: ofSubscription }));
rejected(await v2.GET('/events/v2/subscriptions/{uid}', { params: ofSubscription }), 404, 5);

// Registry: a repository in both versions.
const repo = ok(await v2.POST('/registry/v2/repos/{uid}', { params: { path: { uid: parent } }, body: { name: 'rocket' } }));
const ofRepo = { path: { uid: repo.uid } };
ok(
  await v2.PATCH('/registry/v2/repos/{uid}', {
    params: { ...ofRepo, query: { updateMask: 'description' } },
    body: { description: 'Goes up' },
  }),
);
same(ok(await v2.GET('/registry/v2/repos/{uid}', { params: ofRepo })).description, 'Goes up', 'description of the repository');
const repos = ok(await v1.GET('/registry/v1/repos', { params: { query: { id: repo.uid } } }));
same(repos.items[0]?.description, 'Goes up', 'description of the repository in v1');
const tags = ok(await v2.GET('/registry/v2/tags', { params: { query: { 'uidp.childrenOf': repo.uid } } }));
same(tags.tags.length, 0, 'number of tags');
ok(await v2.DELETE('/registry/v2/repos/{uid}', { params: ofRepo }));
rejected(await v2.GET('/registry/v2/repos/{uid}', { params: ofRepo }), 404, 5);

// Vulnerabilities: an advisory.
const about = { artifactType: 'apk', artifactName: 'curl', componentName: 'stdlib', componentType: 'go-module' };
const advisory = ok(
  await v1.POST('/vulnerabilities/v1/advisories', { body: { parentId: parent, advisory: { ...about, aliases: ['CVE-2026-1'] } } }),
);
const ofAdvisory = { path: { id: advisory.id } };
ok(
  await v1.PUT('/vulnerabilities/v1/advisories/{id}', {
    params: ofAdvisory,
    body: { ...about, aliases: ['CVE-2026-1', 'CVE-2026-2'] },
  }),
);
const shown = ok(await v2.GET('/vulnerabilities/v2/advisories/{uid}', { params: { path: { uid: advisory.id } } }));
same(shown.aliases.join(), 'CVE-2026-1,CVE-2026-2', 'aliases of the advisory');
const advisories = ok(await v2.GET('/vulnerabilities/v2/advisories', { params: { query: { 'uidp.descendantsOf': parent } } }));
same(advisories.advisories.length, 1, 'number of advisories');
ok(await v1.DELETE('/vulnerabilities/v1/advisories/{id}', { params: ofAdvisory }));
rejected(await v1.PUT('/vulnerabilities/v1/advisories/{id}', { params: ofAdvisory, body: about }), 400, 9);

// Libraries: a policy, and the catalogue.
const policy = ok(await v1.POST('/libraries/v1/policies/{id}', { params: { path: { id: parent } }, body: { name: 'cooldown' } }));
const ofPolicy = { path: { id: policy.id } };
const longer = ok(await v1.PUT('/libraries/v1/policies/{id}', { params: ofPolicy, body: { name: 'cooldown', cooldownDays: 9 } }));
same(longer.cooldownDays, 9, 'days of the policy');
const policies = ok(await v1.GET('/libraries/v1/policies', { params: { query: { parentId: parent } } }));
same(policies.items.map((found) => found.id).join(), policy.id, 'policies of the organization');
ok(await v1.DELETE('/libraries/v1/policies/{id}', { params: ofPolicy }));
rejected(await v1.DELETE('/libraries/v1/policies/{id}', { params: ofPolicy }), 404, 5);
const artifacts = ok(await v2.GET('/libraries/v2/artifacts', { params: { query: { ecosystems: ['ECOSYSTEM_JAVA'] } } }));
same(Array.isArray(artifacts.artifacts), true, 'whether there is a list of artifacts');

// Audit: what this flow did.
const entries = ok(await v2.GET('/audit/v1/entries', { params: { query: { organization: parent, pageSize: 5 } } }));
same(entries.entries.length, 5, 'number of entries');
ok(await v2.DELETE('/iam/v2/groups/{uid}', { params: { path: { uid: parent } } }));
