// 4.3: updates with a field mask.
import { check, has, same, that } from '../lib/check.mjs';
import { refused, v2error } from '../lib/status.mjs';
import { instant, pause } from '../lib/names.mjs';

export const title = 'Update masks';

export async function run(w) {
  const group = await w.group(w.org, 'masks');
  const full = { description: 'd', catalogTier: 'CATALOG_TIER_BASE', bundles: ['base'], aliases: ['a/b:c'], activeTags: ['latest'] };
  const patch = (repo, body, query) => w.owner.patch(`/registry/v2/repos/${repo.uid}`, body, query);
  const still = (repo) => ({ ...repo, updateTime: 0 });

  await check('only what the mask names is changed, the rest of the body is ignored', async () => {
    const repo = await w.repo(group, full);
    const after = await w.must(patch(repo, { description: 'new', bundles: [], catalogTier: 'CATALOG_TIER_AI', name: 'other-name' }, { updateMask: 'description' }));
    same(still(after), still({ ...repo, description: 'new' }), 'repository');
  });
  await check('several fields, in both spellings, with the parameter in both spellings', async () => {
    for (const query of [{ updateMask: 'description,catalogTier' }, { updateMask: 'description,catalog_tier' }, { update_mask: 'description,catalog_tier' }]) {
      const repo = await w.repo(group, full);
      const after = await w.must(patch(repo, { description: 'new', catalogTier: 'CATALOG_TIER_AI', bundles: [] }, query));
      same(still(after), still({ ...repo, description: 'new', catalogTier: 'CATALOG_TIER_AI' }), `repository after ${JSON.stringify(query)}`);
    }
  });
  await check('a named field that the body lacks is cleared', async () => {
    const repo = await w.repo(group, full);
    const after = await w.must(patch(repo, {}, { updateMask: 'description,bundles' }));
    same(still(after), still({ ...repo, description: '', bundles: [] }), 'repository');
  });
  await check('* replaces everything', async () => {
    const repo = await w.repo(group, full);
    const after = await w.must(patch(repo, { name: repo.name, description: 'only' }, { updateMask: '*' }));
    has(after, { uid: repo.uid, name: repo.name, description: 'only', catalogTier: 'CATALOG_TIER_UNSPECIFIED', bundles: [], aliases: [], activeTags: [], createTime: repo.createTime });
  });
  await check('* with a resource as it was read changes nothing', async () => {
    const repo = await w.repo(group, full);
    same(still(await w.must(patch(repo, repo, { updateMask: '*' }))), still(repo), 'repository');
  });
  await check('* without a required field is refused', async () => {
    const repo = await w.repo(group, full);
    refused(await patch(repo, { description: 'x' }, { updateMask: '*' }), 400, 3);
    same((await w.owner.get(`/registry/v2/repos/${repo.uid}`)).json, repo, 'repository');
  });
  await check('without a mask the members of the body are the mask', async () => {
    const repo = await w.repo(group, full);
    same(still(await w.must(patch(repo, { description: 'new' }))), still({ ...repo, description: 'new' }), 'one member');
    same(still(await w.must(patch(repo, { description: '', bundles: [] }))), still({ ...repo, description: '', bundles: [] }), 'empty members');
  });
  await check('a mask that names what does not exist is refused', async () => {
    const repo = await w.repo(group, full);
    v2error(await patch(repo, { description: 'x' }, { updateMask: 'description,nonsense' }), 400, 3, undefined, 'registry.chainguard.dev');
    same((await w.owner.get(`/registry/v2/repos/${repo.uid}`)).json, repo, 'repository');
  });
  await check('a mask that names an output-only field is refused', async () => {
    const repo = await w.repo(group, full);
    refused(await patch(repo, { createTime: '2001-01-01T00:00:00Z' }, { updateMask: 'createTime' }), 400, 3);
  });
  await check('the path, not the body, says which one', async () => {
    const [repo, other] = [await w.repo(group, full), await w.repo(group, full)];
    const after = await w.must(patch(repo, { uid: other.uid, description: 'mine' }, { updateMask: 'description' }));
    same(after.uid, repo.uid, 'uid');
    same((await w.owner.get(`/registry/v2/repos/${other.uid}`)).json, other, 'the other repository');
  });
  await check('updateTime advances, createTime stays', async () => {
    const repo = await w.repo(group, full);
    await pause(5);
    const after = await w.must(patch(repo, { description: 'later' }, { updateMask: 'description' }));
    that(instant(after.updateTime) > instant(repo.updateTime), `${after.updateTime} is not after ${repo.updateTime}`);
    same(after.createTime, repo.createTime, 'createTime');
  });
  await check('a bad value is refused and changes nothing', async () => {
    const repo = await w.repo(group, full);
    refused(await patch(repo, { description: 'fine', aliases: ['no-colon'] }, { updateMask: 'description,aliases' }), 400, 3);
    same((await w.owner.get(`/registry/v2/repos/${repo.uid}`)).json, repo, 'repository');
  });
}
