// Organizations and groups.
export const groups = [
  {
    name: 'an organization is created',
    way: ['Organizations', 'Create an organization'],
    fill: (w) => ({ 'group.name': `made by ${w.mark}`, 'group.description': "the operator's \"first\" $HOME `one`" }),
    proof: async (w) => {
      const { groups: made } = await w.get(`/iam/v2/groups?name=${encodeURIComponent(`made by ${w.mark}`)}`);
      return [made.map((one) => one.description), ["the operator's \"first\" $HOME `one`"]];
    },
  },
  {
    name: 'a group is created',
    way: ['Groups', 'Create a group'],
    fill: () => ({ 'group.name': 'kitchen', 'group.description': 'where it\nis cooked' }),
    proof: async (w) => [(await below(w, w.ids.org)).kitchen, 'where it\nis cooked'],
  },
  {
    name: 'a group is created below another',
    way: ['Groups', 'team', 'Create a group below'],
    fill: () => ({ 'group.name': 'inner' }),
    proof: async (w) => [Object.keys(await below(w, w.ids.team)), ['inner']],
  },
  {
    name: 'a group is renamed',
    given: async (w) => { w.ids.old = await w.group('old name'); },
    way: ['Groups', 'old name', 'Edit'],
    fill: () => ({ 'group.name': 'new name' }),
    proof: async (w) => [(await w.get(`/iam/v2/groups/${w.ids.old}`)).name, 'new name'],
  },
  {
    name: 'a group is deleted',
    given: async (w) => { w.ids.gone = await w.group('short lived'); },
    way: ['Groups', 'short lived', 'Delete'],
    confirm: () => 'short lived',
    proof: async (w) => [await w.status(`/iam/v2/groups/${w.ids.gone}`), 404],
  },
  {
    name: 'a quota is set for a group, after its preview',
    given: async (w) => { w.ids.quota = await w.group('with a quota'); },
    way: ['Groups', 'with a quota', 'Edit the registry policy'],
    fill: () => ({ 'policy.byte_quota': '1048576', 'policy.retention.keep_last': '5' }),
    preview: true,
    proof: async (w) => {
      const { byteQuota, retention } = await w.get(`/registrypolicies/v1/groups/${w.ids.quota}`);
      return [[byteQuota, retention.keepLast], ['1048576', 5]];
    },
  },
  {
    name: 'advisories of a group become public',
    given: async (w) => { w.ids.public = await w.group('public advisories'); },
    way: ['Groups', 'public advisories', 'Edit the advisory settings'],
    fill: () => ({ 'settings.public': 'true', 'settings.second_reviewer_required': 'true' }),
    proof: async (w) => {
      const settings = await w.get(`/advisorysettings/v1/groups/${w.ids.public}`);
      return [[settings.public, settings.secondReviewerRequired], [true, true]];
    },
  },
  {
    name: 'terms are accepted',
    way: ['Groups', (w) => `flows ${w.mark}`, 'Accept terms'],
    fill: () => ({ document_ids: 'terms-1' }),
    proof: async (w) => {
      const { termsAcceptances } = await w.get(`/iam/v2/terms/${w.ids.org}`);
      return [termsAcceptances.map((one) => one.docId), ['terms-1']];
    },
  },
];

/** Descriptions of the groups directly below one, by name. */
async function below(w, uid) {
  const { groups: found } = await w.get(`/iam/v2/groups?uidp.childrenOf=${uid}&page_size=200`);
  return Object.fromEntries(found.map((one) => [one.name, one.description ?? '']));
}
