// A flow of each domain with the client that openapi-generator makes of the documents.
import * as first from './generated/v1/index.js';
import * as second from './generated/v2/index.js';

const { BASE_URL, OPERATOR_TOKEN } = process.env;
const v1 = new first.Configuration({ basePath: BASE_URL, accessToken: OPERATOR_TOKEN });
const v2 = new second.Configuration({ basePath: BASE_URL, accessToken: OPERATOR_TOKEN });

function same(actual: unknown, expected: unknown, what: string): void {
  if (actual !== expected) throw new Error(`${what}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
}

/** The error of a call that was rejected, read as the documents describe it. */
async function rejected(call: Promise<unknown>, status: number, code: number): Promise<void> {
  const error: unknown = await call.then(() => undefined, (error: unknown) => error);
  if (!(error instanceof first.ResponseError || error instanceof second.ResponseError)) throw error ?? new Error('accepted');
  const body = second.GoogleRpcStatusFromJSON(await error.response.json());
  same(error.response.status, status, `status of ${error.response.url}`);
  same(body.code, code, `code of ${error.response.url}`);
  same(typeof body.message, 'string', `message of ${error.response.url}`);
}

// Identity and access.
const iam = new second.IamApi(v2);
const organization = await iam.iamGroupsServiceCreateGroupWithoutParent({ chainguardPlatformIamV2GroupInput: { name: 'generated' } });
const parent = organization.uid;
const group = await iam.iamGroupsServiceCreateGroup({ uid: parent, chainguardPlatformIamV2GroupInput: { name: 'team' } });
const changed = await iam.iamGroupsServiceUpdateGroup({
  uid: group.uid,
  updateMask: 'description',
  iamGroupsServiceUpdateGroupRequest: { description: 'A team' },
});
same(changed.description, 'A team', 'description of the group');
same((await iam.iamGroupsServiceGetGroup({ uid: group.uid })).name, 'team', 'name of the group');
const groups = await iam.iamGroupsServiceListGroups({ uidpDescendantsOf: parent });
same(groups.groups.map((found) => found.uid).join(), group.uid, 'groups below the organization');
same((await new first.IamApi(v1).iamGroupsList({ id: group.uid })).items.length, 1, 'the group in v1');
await iam.iamGroupsServiceDeleteGroup({ uid: group.uid });
await rejected(iam.iamGroupsServiceGetGroup({ uid: group.uid }), 404, 5);
await rejected(iam.iamGroupsServiceCreateGroupWithoutParent({ chainguardPlatformIamV2GroupInput: { name: '' } }), 400, 3);
await rejected(new second.IamApi(new second.Configuration({ basePath: BASE_URL })).iamGroupsServiceListGroups({}), 401, 16);

// Events.
const events = new second.EventsApi(v2);
const subscription = await events.eventsSubscriptionsServiceCreateSubscription({
  uid: parent,
  chainguardPlatformEventsV2SubscriptionInput: { sink: 'https://events.example.com/generated' },
});
const subscribed = await events.eventsSubscriptionsServiceGetSubscription({ uid: subscription.uid });
same(subscribed.sink, 'https://events.example.com/generated', 'sink of the subscription');
const subscriptions = await events.eventsSubscriptionsServiceListSubscriptions({ uidpDescendantsOf: parent });
same(subscriptions.subscriptions.length, 1, 'number of subscriptions');
await events.eventsSubscriptionsServiceDeleteSubscription({ uid: subscription.uid });
await rejected(events.eventsSubscriptionsServiceGetSubscription({ uid: subscription.uid }), 404, 5);

// Registry.
const registry = new second.RegistryApi(v2);
const repo = await registry.registryReposServiceCreateRepo({ uid: parent, chainguardPlatformRegistryV2RepoInput: { name: 'rocket' } });
const described = await registry.registryReposServiceUpdateRepo({
  uid: repo.uid,
  updateMask: 'description',
  registryReposServiceUpdateRepoRequest: { description: 'Goes up' },
});
same(described.description, 'Goes up', 'description of the repository');
same((await registry.registryReposServiceGetRepo({ uid: repo.uid })).name, 'rocket', 'name of the repository');
const repos = await new first.RegistryApi(v1).registryRegistryListRepos({ id: repo.uid });
same(repos.items[0]?.description, 'Goes up', 'description of the repository in v1');
await registry.registryReposServiceDeleteRepo({ uid: repo.uid });
await rejected(registry.registryReposServiceGetRepo({ uid: repo.uid }), 404, 5);

// Vulnerabilities.
const vulnerabilities = new first.VulnerabilitiesApi(v1);
const about = { artifactType: 'apk', artifactName: 'curl', componentName: 'stdlib', componentType: 'go-module' };
const advisory = await vulnerabilities.vulnerabilitiesAdvisoriesCreate({
  vulnerabilitiesAdvisoriesCreateRequest: { parentId: parent, advisory: { ...about, aliases: ['CVE-2026-1'] } },
});
await vulnerabilities.vulnerabilitiesAdvisoriesUpdate({
  id: advisory.id,
  vulnerabilitiesAdvisoriesUpdateRequest: { ...about, aliases: ['CVE-2026-1', 'CVE-2026-2'] },
});
const current = new second.VulnerabilitiesApi(v2);
const shown = await current.vulnerabilitiesAdvisoriesServiceGetAdvisory({ uid: advisory.id });
same(shown.aliases.join(), 'CVE-2026-1,CVE-2026-2', 'aliases of the advisory');
const advisories = await current.vulnerabilitiesAdvisoriesServiceListAdvisories({ uidpDescendantsOf: parent });
same(advisories.advisories.length, 1, 'number of advisories');
await vulnerabilities.vulnerabilitiesAdvisoriesDelete({ id: advisory.id });
await rejected(
  vulnerabilities.vulnerabilitiesAdvisoriesUpdate({ id: advisory.id, vulnerabilitiesAdvisoriesUpdateRequest: about }),
  400,
  9,
);

// Libraries.
const libraries = new first.LibrariesApi(v1);
const policy = await libraries.librariesLibraryPoliciesCreatePolicy({
  id: parent,
  chainguardPlatformLibrariesLibraryPolicyInput: { name: 'cooldown' },
});
const longer = await libraries.librariesLibraryPoliciesUpdatePolicy({
  id: policy.id,
  librariesLibraryPoliciesUpdatePolicyRequest: { name: 'cooldown', cooldownDays: 9 },
});
same(longer.cooldownDays, 9, 'days of the policy');
const policies = await libraries.librariesLibraryPoliciesListPolicies({ parentId: parent });
same(policies.items.map((found) => found.id).join(), policy.id, 'policies of the organization');
await libraries.librariesLibraryPoliciesDeletePolicy({ id: policy.id });
await rejected(libraries.librariesLibraryPoliciesDeletePolicy({ id: policy.id }), 404, 5);

// Audit.
const entries = await new second.AuditApi(v2).auditAuditListEntries({ organization: parent, pageSize: 5 });
same(entries.entries.length, 5, 'number of entries');
await iam.iamGroupsServiceDeleteGroup({ uid: parent });
