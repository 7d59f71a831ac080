// Policies for packages, where they apply, and the resolution cache.
const policy = (name) => async (w) => {
  w.ids[name] = (await w.post(`/libraries/v1/policies/${w.ids.org}`, { name, cooldownDays: 3, blockList: [{ purl: 'pkg:npm/event-stream' }] })).id;
};
/** A policy that applies to an ecosystem. */
const applied = (name, ecosystem) => async (w) => {
  await policy(name)(w);
  const body = { policy: w.ids[name], ecosystem, mode: 'LIBRARY_POLICY_BINDING_MODE_LOG' };
  w.ids[`binding of ${name}`] = (await w.post(`/libraries/v1/policy-bindings/${w.ids.org}`, body)).id;
};
const policies = async (w) => (await w.get(`/libraries/v1/policies?parent_id=${w.ids.org}&page_size=100`)).items;
const bindingsOf = async (w, name) => {
  const { items } = await w.get(`/libraries/v1/policy-bindings?parent_id=${w.ids.org}&page_size=100`);
  return items.filter((one) => one.policy === w.ids[name]).map((one) => [one.ecosystem, one.mode]);
};
const one = async (w, name) => (await policies(w)).find((found) => found.name === name);

export const packages = [
  {
    name: 'a policy is created',
    way: ['Policies', 'Create a policy'],
    fill: () => ({
      'policy.name': 'patience', 'policy.cooldown_days': '7', 'policy.block_list': '[{"purl": "pkg:npm/event-stream"}]',
      'policy.blocked_licenses': 'AGPL-3.0-only\nSSPL-1.0',
    }),
    proof: async (w) => {
      const { cooldownDays, blockList, blockedLicenses } = await one(w, 'patience');
      return [[cooldownDays, blockList, blockedLicenses], [7, [{ purl: 'pkg:npm/event-stream' }], ['AGPL-3.0-only', 'SSPL-1.0']]];
    },
  },
  {
    name: 'a package is exempted',
    given: policy('exempting'),
    way: ['Policies', ['exempting', 'Edit and exempt']],
    fill: () => ({ allow_list: '[{"purl": "pkg:npm/left-pad", "bypass_cooldown": true, "justification": "it\'s ours"}]' }),
    proof: async (w) => {
      const { cooldownDays, allowList } = await one(w, 'exempting');
      return [[cooldownDays, allowList.map((entry) => [entry.purl, entry.bypassCooldown, entry.justification])], [3, [['pkg:npm/left-pad', true, "it's ours"]]]];
    },
  },
  {
    name: 'tests of a policy are set',
    given: policy('tested'),
    way: ['Policies', ['tested', 'Set tests']],
    fill: () => ({ tests: '[{"purl": "pkg:npm/event-stream@3.3.6", "expected": "EXPECTED_DECISION_REFUSED"}]' }),
    proof: async (w) => {
      const { results } = await w.get(`/librarypolicytests/v1/policies/${w.ids.tested}:tests`);
      return [results.map((result) => [result.test.purl, result.passed]), [['pkg:npm/event-stream@3.3.6', true]]];
    },
  },
  {
    name: 'a policy is deleted',
    given: policy('abolished'),
    way: ['Policies', ['abolished', 'Delete']],
    confirm: () => 'abolished',
    proof: async (w) => [await one(w, 'abolished') === undefined, true],
  },
  {
    name: 'a policy applies to an ecosystem',
    given: policy('applying'),
    way: ['Policies', 'Apply a policy to an ecosystem'],
    fill: (w) => ({ 'binding.policy': w.ids.applying, 'binding.ecosystem': 'PYTHON', 'binding.mode': 'LIBRARY_POLICY_BINDING_MODE_LOG' }),
    proof: async (w) => [await bindingsOf(w, 'applying'), [['PYTHON', 'LIBRARY_POLICY_BINDING_MODE_LOG']]],
  },
  {
    name: 'a policy is enforced',
    given: applied('enforcing', 'JAVA'),
    way: ['Policies', ['JAVA', 'Edit']],
    fill: () => ({ mode: 'LIBRARY_POLICY_BINDING_MODE_ENFORCED' }),
    proof: async (w) => [await bindingsOf(w, 'enforcing'), [['JAVA', 'LIBRARY_POLICY_BINDING_MODE_ENFORCED']]],
  },
  {
    name: 'a policy applies no longer',
    given: applied('released', 'JAVASCRIPT'),
    way: ['Policies', ['released', 'Remove']],
    confirm: (w) => w.ids['binding of released'],
    proof: async (w) => [await bindingsOf(w, 'released'), []],
  },
  {
    name: 'the resolution cache is purged',
    way: ['Policies', 'Purge the resolution cache'],
    fill: () => ({ ecosystem: 'PYTHON' }),
    confirm: (w) => w.ids.org,
    proof: async (w) => {
      const { watermarks } = await w.get(`/libraries/v1/resolutioncache/${w.ids.org}/status`);
      return [watermarks.find((found) => found.ecosystem === 'PYTHON')?.zapCount, '1'];
    },
  },
];
