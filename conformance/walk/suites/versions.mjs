// 1 and 9: five domains, two versions side by side, and the pre-release name.
import { check, has, same, that } from '../lib/check.mjs';
import { absentIn, unique } from '../lib/names.mjs';

export const title = 'Versions';

export async function run(w) {
  const group = await w.group(w.org, 'versions');
  const repo = await w.repo(group, { description: 'd' });
  for (let i = 0; i < 4; i += 1) await w.repo(group);
  const absent = absentIn(w.org);

  // The same request under both names, but for what differs by nature.
  const both = async (api, method, path, options) => {
    const [now, before] = [await api.call(method, path, options), await api.call(method, path.replace('/v2/', '/v2beta1/'), options)];
    return [[now.status, now.text], [before.status, before.text]];
  };
  const reads = [
    `/iam/v2/groups/${w.org}`, '/iam/v2/groups?order_by=name&page_size=200', '/iam/v2/roles?name=viewer', `/iam/v2/identities/${w.ids.owner}`, `/iam/v2/roleBindings?uidp.children_of=${w.org}`,
    `/registry/v2/repos/${repo.uid}`, `/registry/v2/repos?uidp.children_of=${group}`, `/registry/v2/repos/${absent}`, `/registry/v2/repos?uidp.children_of=${absent}`, '/registry/v2/repos?page_size=-1',
  ];
  for (const path of reads) {
    await check(`v2beta1 answers like v2: GET ${path.replaceAll(/[0-9a-f]{40}(\/[0-9a-f]{16})*/g, '{uid}')}`, async () => {
      const [now, before] = await both(w.owner, 'GET', path);
      same(before, now, 'answer of v2beta1');
    });
  }
  await check('v2beta1 writes what v2 reads', async () => {
    const made = await w.must(w.owner.post(`/registry/v2beta1/repos/${group}`, { name: unique('beta'), description: 'one' }));
    same((await w.owner.get(`/registry/v2/repos/${made.uid}`)).json, made, 'the read in v2');
    const after = await w.must(w.owner.patch(`/registry/v2beta1/repos/${made.uid}`, { description: 'two' }, { updateMask: 'description' }));
    same(after.description, 'two', 'description');
    const gone = await w.owner.delete(`/registry/v2beta1/repos/${made.uid}`);
    same([gone.status, gone.text], [200, ''], 'status and body of DELETE');
  });
  await check('a page_token of v2 continues in v2beta1', async () => {
    const scope = { 'uidp.children_of': group, page_size: 2 };
    const first = (await w.owner.get('/registry/v2/repos', scope)).json;
    const query = { ...scope, page_token: first.next_page_token };
    const [now, before] = [(await w.owner.get('/registry/v2/repos', query)).json, (await w.owner.get('/registry/v2beta1/repos', query)).json];
    same(before.repos, now.repos, 'rows of the second page');
  });
  await check('only the version segment is rewritten', async () => {
    same((await w.owner.get('/v2beta1/iam/groups')).status, 404, 'status of /v2beta1/iam/groups');
    same((await w.owner.get('/iam/groups/v2beta1')).status, 404, 'status of /iam/groups/v2beta1');
  });

  const domains = {
    IAM: ['/iam/v1/groups', '/iam/v2/groups'], Registry: ['/registry/v1/repos', '/registry/v2/repos'],
    Vulnerabilities: ['/vulnerabilities/v1/advisories', '/vulnerabilities/v2/advisories'],
    Libraries: ['/libraries/v1/artifacts', '/libraries/v2/artifacts?ecosystems=ECOSYSTEM_PYTHON'], Advisory: ['/advisory/v1/metadata', '/advisory/v2/metadata'],
  };
  for (const [name, paths] of Object.entries(domains)) {
    await check(`${name} is there in v1 and v2`, async () => {
      for (const path of paths) {
        const answer = await w.owner.get(path);
        same(answer.status, 200, `status of ${path}`);
        that(Object.values(answer.json).some(Array.isArray), `${path} lists nothing`);
      }
    });
  }
  await check('one token serves both versions', async () => {
    same([(await w.viewer.get('/iam/v1/groups')).status, (await w.viewer.get('/iam/v2/groups')).status], [200, 200], 'statuses');
  });
  await check('the same group in v1 and v2 names', async () => {
    const now = (await w.owner.get(`/iam/v2/groups/${group}`)).json;
    const [old] = (await w.owner.get('/iam/v1/groups', { id: group })).json.items;
    has(old, { id: now.uid, name: now.name, description: now.description, resourceLimits: now.resourceLimits, verified: now.verified }, 'v1');
  });
  await check('ping answers without a token in both versions', async () => {
    for (const version of ['v1', 'v2']) {
      const answer = await w.nobody.get(`/ping/${version}/ping`);
      same([answer.status, Object.keys(answer.json)], [200, ['response']], `answer of ${version}`);
    }
  });
}
