// 7: statuses and structured details.
import { check, has, same, that } from '../lib/check.mjs';
import { detail, forbidden, notFound, refused, v2error } from '../lib/status.mjs';
import { absentIn, absentRoot, unique } from '../lib/names.mjs';

export const title = 'Errors';

export async function run(w) {
  const kinds = {
    groups: ['iam', 'iam.chainguard.dev/Group', { name: 'any name', description: 'x' }],
    identities: ['iam', 'iam.chainguard.dev/Identity', { description: 'x' }],
    roles: ['iam', 'iam.chainguard.dev/Role', { description: 'x' }],
    repos: ['registry', 'registry.chainguard.dev/Repo', { description: 'x' }],
  };
  for (const [collection, [service, type, body]] of Object.entries(kinds)) {
    const domain = `${service}.chainguard.dev`;
    await check(`${collection}: Get, PATCH and DELETE of what is missing are 404 with ResourceInfo`, async () => {
      const uid = absentIn(w.org);
      const path = `/${service}/v2/${collection}/${uid}`;
      notFound(await w.owner.get(path), domain, type, uid);
      notFound(await w.owner.patch(path, body, { updateMask: 'description' }), domain, type, uid);
      notFound(await w.owner.delete(path), domain, type, uid);
    });
    await check(`${collection}: without the capability 403, whether or not anything is there`, async () => {
      for (const uid of [absentIn(w.org), absentRoot()]) {
        const info = forbidden(await w.stranger.delete(`/${service}/v2/${collection}/${uid}`), domain);
        that(Object.values(info.metadata ?? {}).some((v) => v.includes(uid) || uid.includes(v)), `the metadata ${JSON.stringify(info.metadata)} names no scope`);
      }
    });
    await check(`${collection}: a parent that is missing is 404 and named`, async () => {
      const parent = absentIn(w.org);
      const bodies = {
        groups: { name: unique('x') }, repos: { name: unique('x') }, roles: { name: unique('x'), capabilities: ['CAP_IAM_GROUPS_LIST'] },
        identities: { name: unique('x'), claimMatch: { issuer: 'https://issuer.example.com', subject: 'x' } },
      };
      notFound(await w.owner.post(`/${service}/v2/${collection}/${parent}`, bodies[collection]), domain, 'iam.chainguard.dev/Group', parent);
    });
    await check(`${collection}: a malformed uid is 400 for everybody with a token`, async () => {
      for (const api of [w.owner, w.stranger]) refused(await api.get(`/${service}/v2/${collection}/not-a-uidp`), 400, 3);
    });
  }
  await check('role bindings: Get of what is missing is 404, DELETE is not', async () => {
    const uid = absentIn(w.org);
    notFound(await w.owner.get(`/iam/v2/roleBindings/${uid}`), 'iam.chainguard.dev', 'iam.chainguard.dev/RoleBinding', uid);
    same((await w.owner.delete(`/iam/v2/roleBindings/${uid}`)).status, 200, 'status of DELETE');
  });
  await check('a hidden and a missing resource answer alike', async () => {
    const hidden = await w.repo(await w.group(w.org, 'hidden'));
    const absent = absentIn(hidden.uid.slice(0, hidden.uid.lastIndexOf('/')));
    const [one, two] = [await w.stranger.get(`/registry/v2/repos/${hidden.uid}`), await w.stranger.get(`/registry/v2/repos/${absent}`)];
    same([one.status, one.text.replaceAll(hidden.uid, '')], [two.status, two.text.replaceAll(absent, '')], 'answers');
  });
  await check('the capability that lacks is named', async () => {
    const info = forbidden(await w.viewer.post(`/registry/v2/repos/${w.org}`, { name: unique('x') }), 'registry.chainguard.dev');
    that(Object.values(info.metadata ?? {}).some((v) => v.includes('repo.create')), `metadata ${JSON.stringify(info.metadata)}`);
  });
  await check('a name that is taken is 409 with ResourceInfo', async () => {
    const made = await w.repo(w.org);
    const answer = await w.owner.post(`/registry/v2/repos/${w.org}`, { name: made.name });
    v2error(answer, 409, 6, 'ALREADY_EXISTS', 'registry.chainguard.dev');
    same(detail(answer, 'ResourceInfo')?.resourceType, 'registry.chainguard.dev/Repo', 'ResourceInfo.resourceType');
  });
  await check('401 in v2 carries ErrorInfo', async () => {
    const answer = await w.nobody.get('/iam/v2/groups');
    v2error(answer, 401, 16, 'UNAUTHENTICATED');
  });
  await check('an unknown path is 404', async () => {
    for (const path of ['/nowhere/v2/groups', '/iam/v3/groups', '/iam/v2/nothing', '/iam/v2']) {
      const answer = await w.owner.get(path);
      refused(answer, 404, 5);
    }
  });
  await check('malformed JSON is 400 in both versions', async () => {
    refused(await w.owner.call('POST', `/iam/v2/groups/${w.org}`, { raw: '{' }), 400, 3);
    refused(await w.owner.call('POST', `/iam/v1/groups/${w.org}`, { raw: '{' }), 400, 3);
  });
  await check('errors come before work: 401, then 400 for the uid, then 403, then 404', async () => {
    refused(await w.nobody.get('/iam/v2/groups/not-a-uidp'), 401, 16);
    refused(await w.stranger.patch('/iam/v2/groups/not-a-uidp', { description: 'x' }, { updateMask: 'description' }), 400, 3);
    refused(await w.stranger.get(`/iam/v2/groups/${absentIn(w.org)}`), 403, 7);
    refused(await w.viewer.get(`/iam/v2/groups/${absentIn(w.org)}`), 404, 5);
  });
  await check('answers are not stored by caches between callers', async () => {
    const answer = await w.owner.get('/iam/v1/groups');
    that(!/public/.test(answer.headers.get('cache-control') ?? ''), 'cache-control is public');
    has(answer, { status: 200 }, 'answer');
  });
}
