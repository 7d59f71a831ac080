// Advisories, their events, and the review of these.
const body = (name, alias) => ({
  artifactType: 'apk', artifactName: name, artifactArchitecture: 'x86_64', componentName: name, componentType: 'apk',
  componentLocation: '/usr/lib', aliases: [alias],
});
const advisory = (alias, name) => async (w) => {
  const made = await w.post('/vulnerabilities/v1/advisories', { parentId: w.ids.org, advisory: body(name, alias) });
  w.ids[alias] = made.id;
  w.ids[`name of ${alias}`] = made.advisoryId;
};
/** An advisory with an event that waits for its review. */
const waiting = (alias, name) => async (w) => {
  await advisory(alias, name)(w);
  const event = { truePositiveDetermination: { note: 'it is used' }, status: 'PENDING' };
  const made = await w.post(`/vulnerabilities/v1/advisories/${w.ids[alias]}/events`, { advisoryEvent: event });
  w.ids[`event of ${alias}`] = made.id;
};
const read = (w, alias) => w.get(`/vulnerabilities/v2/advisories/${w.ids[alias]}`);
const states = async (w, alias) => (await read(w, alias)).events.map((one) => one.reviewState);
/** The name that a list shows of an advisory. */
const known = (alias) => (w) => w.ids[`name of ${alias}`];
const aliased = async (w, alias) => {
  const { advisories: found } = await w.get(`/vulnerabilities/v2/advisories?uidp.descendantsOf=${w.ids.org}&page_size=200`);
  return found.filter((one) => (one.aliases ?? []).includes(alias));
};

export const advisories = [
  {
    name: 'an advisory is created',
    way: ['Advisories', 'Create an advisory'],
    fill: () => ({
      'advisory.artifact_type': 'apk', 'advisory.artifact_name': 'openssl', 'advisory.artifact_architecture': 'x86_64',
      'advisory.component_name': 'openssl', 'advisory.component_type': 'apk', 'advisory.component_location': '/usr/lib',
      'advisory.aliases': 'CVE-2026-2001',
    }),
    proof: async (w) => [(await aliased(w, 'CVE-2026-2001')).map((one) => one.artifactName), ['openssl']],
  },
  {
    name: 'an event is added to an advisory',
    given: advisory('CVE-2026-2002', 'curl'),
    way: ['Advisories', known('CVE-2026-2002'), 'Add an event'],
    fill: () => ({ 'advisory_event.fixed.fixed_version': '8.11.1-r0', 'advisory_event.fixed.note': "it's \"fixed\"\nsince" }),
    proof: async (w) => [(await read(w, 'CVE-2026-2002')).events.map(({ fixed }) => [fixed.fixedVersion, fixed.note]), [['8.11.1-r0', "it's \"fixed\"\nsince"]]],
  },
  {
    name: 'an advisory gets another alias',
    given: advisory('CVE-2026-2003', 'zlib'),
    way: ['Advisories', known('CVE-2026-2003'), 'Edit'],
    fill: () => ({ aliases: 'CVE-2026-2003\nGHSA-aaaa-bbbb-cccc' }),
    proof: async (w) => {
      const { aliases, artifactName } = await read(w, 'CVE-2026-2003');
      return [[aliases, artifactName], [['CVE-2026-2003', 'GHSA-aaaa-bbbb-cccc'], 'zlib']];
    },
  },
  {
    name: 'an advisory is deleted',
    given: advisory('CVE-2026-2004', 'expat'),
    way: ['Advisories', known('CVE-2026-2004'), 'Delete'],
    confirm: (w) => w.ids['CVE-2026-2004'],
    proof: async (w) => [(await aliased(w, 'CVE-2026-2004')).length, 0],
  },
  {
    name: 'an event is approved',
    given: waiting('CVE-2026-2005', 'busybox'),
    way: ['Advisories', known('CVE-2026-2005'), 'Approve'],
    proof: async (w) => [await states(w, 'CVE-2026-2005'), ['REVIEW_STATE_APPROVED']],
  },
  {
    name: 'changes of an event are requested',
    given: waiting('CVE-2026-2006', 'git'),
    way: ['Advisories', known('CVE-2026-2006'), 'Request changes'],
    proof: async (w) => [await states(w, 'CVE-2026-2006'), ['REVIEW_STATE_REQUEST_CHANGES']],
  },
  {
    name: 'an event is rejected',
    given: waiting('CVE-2026-2007', 'bash'),
    way: ['Advisories', known('CVE-2026-2007'), 'Reject'],
    proof: async (w) => [await states(w, 'CVE-2026-2007'), ['REVIEW_STATE_REJECTED']],
  },
  {
    name: 'advisories are imported',
    way: ['Advisories', 'Import advisories'],
    fill: () => ({
      advisories: JSON.stringify([body('perl', 'CVE-2026-2008'), body('perl', 'CVE-2026-2009')]), source: 'a colleague', licence: 'CC0-1.0',
    }),
    proof: async (w) => [[(await aliased(w, 'CVE-2026-2008')).length, (await aliased(w, 'CVE-2026-2009')).length], [1, 1]],
  },
];
