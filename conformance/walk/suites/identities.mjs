// Identities in v2.
import { check, has, same, that } from '../lib/check.mjs';
import { badFields, forbidden } from '../lib/status.mjs';
import { isUidp, unique } from '../lib/names.mjs';

export const title = 'Identities';
const domain = 'iam.chainguard.dev';

export async function run(w) {
  const issuer = 'https://issuer.example.com';
  const path = `/iam/v2/identities/${w.org}`;
  const kinds = {
    'a claim match': { claimMatch: { issuer, subject: 'repo:a/b' } },
    'a claim match by patterns': { claimMatch: { issuerPattern: 'https://issuer\\.example\\.com', subjectPattern: 'repo:a/.*', audiencePattern: 'a|b', claims: { a: 'b' }, claimPatterns: { c: 'd.*' } } },
    'static keys': { staticKeys: { issuer, subject: 'robot', issuerKeys: '{"keys":[]}', expirationTime: new Date(Date.now() + 86400e3).toISOString().replace('.000Z', 'Z') } },
    'an AWS identity': { awsIdentity: { awsAccount: '123456789012', arn: 'arn:aws:iam::123456789012:role/x', userIdPattern: 'AROA.*' } },
  };
  for (const [kind, relationship] of Object.entries(kinds)) {
    await check(`${kind}: create, get, rename, delete`, async () => {
      const name = unique('identity');
      const made = await w.must(w.owner.post(path, { name, description: 'd', ...relationship }));
      has(made, { name, description: 'd' });
      const [key, value] = Object.entries(relationship)[0];
      for (const [member, expected] of Object.entries(value)) {
        if (member === 'expirationTime') same(Date.parse(made[key][member]), Date.parse(expected), member);
        else same(made[key][member], expected, member);
      }
      same((await w.owner.get(`/iam/v2/identities/${made.uid}`)).json, made, 'the next read');
      const after = await w.must(w.owner.patch(`/iam/v2/identities/${made.uid}`, { name: `${name}-2` }, { updateMask: 'name' }));
      same({ ...after, updateTime: 0 }, { ...made, name: `${name}-2`, updateTime: 0 }, 'after the rename');
      const gone = await w.owner.delete(`/iam/v2/identities/${made.uid}`);
      same([gone.status, gone.text], [200, ''], 'status and body of DELETE');
      same((await w.owner.get(`/iam/v2/identities/${made.uid}`)).status, 404, 'status of the next read');
    });
  }
  await check('names, and issuer with subject, need not be unique', async () => {
    const body = { name: unique('double'), claimMatch: { issuer, subject: 'same' } };
    const [one, two] = [await w.must(w.owner.post(path, body)), await w.must(w.owner.post(path, body))];
    that(one.uid !== two.uid, 'the same uid twice');
    same((await w.owner.get('/iam/v2/identities', { name: body.name })).json.total_count, 2, 'total_count');
  });
  await check('the kind may change by the mask *', async () => {
    const made = await w.must(w.owner.post(path, { name: unique('turning'), claimMatch: { issuer, subject: 'x' } }));
    const after = await w.must(w.owner.patch(`/iam/v2/identities/${made.uid}`, { name: made.name, staticKeys: { issuer, subject: 's', issuerKeys: '{"keys":[]}' } }, { updateMask: '*' }));
    same([after.claimMatch, after.staticKeys?.subject], [undefined, 's'], 'claimMatch, staticKeys.subject');
  });
  await check('list filters by relationship_type', async () => {
    const group = await w.group(w.org, 'kinds');
    for (const relationship of Object.values(kinds)) await w.must(w.owner.post(`/iam/v2/identities/${group}`, { name: unique('kind'), ...relationship }));
    const count = async (type) => (await w.owner.get('/iam/v2/identities', { 'uidp.children_of': group, relationship_type: type })).json.identities.length;
    same([await count('RELATIONSHIP_TYPE_CLAIM_MATCH'), await count('RELATIONSHIP_TYPE_STATIC'), await count('RELATIONSHIP_TYPE_AWS_IDENTITY')], [2, 1, 1], 'claim matches, static, AWS');
  });
  await check('lookup tells the uid alone, known beforehand', async () => {
    const answer = await w.stranger.get('/iam/v2/identities:lookupIdentity', { issuer, subject: unique('person') });
    same(answer.status, 200, 'status');
    same(Object.keys(answer.json), ['uid'], 'members');
    that(isUidp(answer.json.uid) && !answer.json.uid.includes('/'), `uid ${answer.json.uid}`);
  });
  await check('an unusable pattern and a missing name are named together', async () =>
    badFields(await w.owner.post(path, { claimMatch: { issuer, subjectPattern: '(' } }), domain, 'name', 'subject_pattern'));
  await check('viewers and strangers make no identities', async () => {
    for (const api of [w.viewer, w.stranger]) forbidden(await api.post(path, { name: unique('x'), claimMatch: { issuer, subject: 'x' } }), domain);
  });
  await check('lastSeenTime tells of the exchange', async () => {
    const seen = (await w.owner.get(`/iam/v2/identities/${w.ids.owner}`)).json.lastSeenTime;
    that(seen && Math.abs(Date.parse(seen) - Date.now()) < 10 * 60e3, `lastSeenTime is ${seen}`);
  });
}
