// Repositories, their policies, tags and images.
const repo = (name, images) => async (w) => { w.ids[name] = await w.repo(name, images); };
const tagsOf = async (w, name) => {
  const { tags } = await w.get(`/registry/v2/tags?uidp.childrenOf=${w.ids[name]}`);
  return Object.fromEntries(tags.map((one) => [one.name, one.digest]).sort());
};
const digestsOf = async (w, name) => {
  const { images } = await w.get(`/images/v1/repos/${w.ids[name]}/images`);
  return images.length;
};
const policyOf = (w, name) => w.get(`/registrypolicies/v1/repos/${w.ids[name]}`);
/** Digests of the images that `push` makes of these texts, which are the same everywhere. */
const digests = {};

const repositories = [
  {
    name: 'a repository is created',
    way: ['Repositories', 'Create a repository'],
    fill: () => ({ 'repo.name': 'site', 'repo.description': 'The site', 'repo.aliases': 'example.com/web:latest\nexample.com/www:latest' }),
    proof: async (w) => {
      const { repos } = await w.get(`/registry/v2/repos?uidp.childrenOf=${w.ids.org}&name=site`);
      return [repos.map((one) => [one.description, one.aliases]), [['The site', ['example.com/web:latest', 'example.com/www:latest']]]];
    },
  },
  {
    name: 'a repository is edited',
    given: repo('edited'),
    way: ['Repositories', 'edited', 'Edit'],
    fill: () => ({ 'repo.description': 'described', 'repo.catalog_tier': 'CATALOG_TIER_BASE' }),
    proof: async (w) => {
      const { name, description, catalogTier } = await w.get(`/registry/v2/repos/${w.ids.edited}`);
      return [[name, description, catalogTier], ['edited', 'described', 'CATALOG_TIER_BASE']];
    },
  },
  {
    name: 'a readme is written',
    given: repo('read'),
    way: ['Repositories', 'read', 'Edit the readme'],
    fill: () => ({ 'repo_readme.content': '# It\'s "read"\n\n- `sh`: $HOME\n- 50 % of <b>it</b>' }),
    proof: async (w) => [(await w.get(`/registry/v2/repos/${w.ids.read}/readme`)).content, '# It\'s "read"\n\n- `sh`: $HOME\n- 50 % of <b>it</b>'],
  },
  {
    name: 'a repository is deleted',
    given: repo('unused'),
    way: ['Repositories', 'unused', 'Delete'],
    confirm: () => 'unused',
    proof: async (w) => [await w.status(`/registry/v2/repos/${w.ids.unused}`), 404],
  },
];

const policies = [
  {
    name: 'a repository becomes public, after its preview',
    given: repo('shown'),
    way: ['Repositories', 'shown', 'Edit the policy'],
    fill: () => ({ 'policy.public': 'true', 'policy.immutable_tag_patterns': 'v[0-9].*\nrelease-.*' }),
    preview: true,
    proof: async (w) => {
      const { public: isPublic, immutableTagPatterns } = await policyOf(w, 'shown');
      return [[isPublic, immutableTagPatterns], [true, ['v[0-9].*', 'release-.*']]];
    },
  },
  {
    name: 'a repository gets an upstream',
    given: repo('followed'),
    way: ['Repositories', 'followed', 'Policy', 'Edit'],
    fill: () => ({ 'policy.upstream.url': 'https://registry.invalid', 'policy.upstream.tag_patterns': 'latest' }),
    proof: async (w) => {
      const { upstream } = await policyOf(w, 'followed');
      return [[upstream.url, upstream.tagPatterns], ['https://registry.invalid', ['latest']]];
    },
  },
  {
    name: 'the password of an upstream is set',
    given: repo('locked'),
    way: ['Repositories', 'locked', 'Edit the policy'],
    fill: () => ({
      'policy.upstream.url': 'https://registry.invalid', 'policy.upstream.tag_patterns': 'latest', 'policy.upstream.username': 'reader',
      'policy.upstream.password': 'not for a line',
    }),
    secret: true,
    proof: async (w) => [(await policyOf(w, 'locked')).upstream.hasPassword, true],
  },
  {
    name: 'an upstream is checked',
    given: async (w) => {
      await repo('checked')(w);
      await w.call('PATCH', `/registrypolicies/v1/repos/${w.ids.checked}`, { upstream: { url: 'https://registry.invalid', tagPatterns: ['latest'] } });
    },
    way: ['Repositories', 'checked', 'Check the upstream'],
    // A second check within a while returns the first one.
    proof: async (w) => [(await w.post(`/replication/v1/repos/${w.ids.checked}:checkUpstream`, {})).repeatedResult, true],
  },
  {
    name: 'retention is set and applied',
    given: async (w) => {
      await repo('kept', { one: 'the first', two: 'the second', three: 'the third' })(w);
      await w.call('PATCH', `/registrypolicies/v1/repos/${w.ids.kept}`, { retention: { keepLast: 1 } });
    },
    way: ['Repositories', 'kept', 'Policy', 'Apply retention'],
    confirm: (w) => w.ids.kept,
    proof: async (w) => [Object.keys(await tagsOf(w, 'kept')), ['three']],
  },
];

const images = [
  {
    name: 'an image gets a tag',
    given: async (w) => { w.ids.tagged = await w.repo('tagged'); digests.tagged = await w.push(w.ids.tagged, 'one', 'an image'); },
    way: ['Repositories', 'tagged', 'one', 'Tag this image'],
    fill: () => ({ 'tag.name': 'stable' }),
    proof: async (w) => [await tagsOf(w, 'tagged'), { one: digests.tagged, stable: digests.tagged }],
  },
  {
    name: 'a tag is moved',
    given: async (w) => {
      w.ids.moving = await w.repo('moving', { latest: 'the old' });
      digests.moving = await w.push(w.ids.moving, 'v2', 'the new');
      const { tags } = await w.get(`/registry/v2/tags?uidp.childrenOf=${w.ids.moving}&name=latest`);
      w.ids['latest of moving'] = tags[0].uid;
    },
    way: ['Repositories', 'moving', 'All tags', ['latest', 'Move']],
    fill: () => ({ digest: digests.moving }),
    proof: async (w) => [(await tagsOf(w, 'moving')).latest, digests.moving],
  },
  {
    name: 'a tag is deleted',
    given: async (w) => {
      w.ids.untagged = await w.repo('untagged', { one: 'an image', two: 'an image' });
      const { tags } = await w.get(`/registry/v2/tags?uidp.childrenOf=${w.ids.untagged}&name=two`);
      w.ids['two of untagged'] = tags[0].uid;
    },
    way: ['Repositories', 'untagged', 'All tags', ['two', 'Delete']],
    confirm: () => 'two',
    proof: async (w) => [Object.keys(await tagsOf(w, 'untagged')), ['one']],
  },
  {
    name: 'an image is deleted',
    given: async (w) => {
      w.ids.cleared = await w.repo('cleared', { kept: 'it stays' });
      digests.cleared = await w.push(w.ids.cleared, 'gone', 'it goes');
    },
    way: ['Repositories', 'cleared', 'gone', 'Delete'],
    confirm: () => digests.cleared,
    proof: async (w) => [[await digestsOf(w, 'cleared'), Object.keys(await tagsOf(w, 'cleared'))], [1, ['kept']]],
  },
];

export const registry = [...repositories, ...policies, ...images];
