// 1 and 4.4: the same host serves gRPC for every v2 endpoint.
import { check, same, that } from '../lib/check.mjs';
import { field, fields, number, text, unary } from '../lib/grpc.mjs';
import { absentIn, unique } from '../lib/names.mjs';

export const title = 'gRPC on the same port';

export async function run(w) {
  const group = await w.group(w.org, 'grpc');
  const repo = await w.repo(group, { description: 'words' });
  const call = (method, message, api = w.owner) => unary(w.base, `chainguard.platform.${method}`, message, api.token);
  const empty = Buffer.alloc(0);

  await check('GetRepo answers what REST answers', async () => {
    const answer = await call('registry.v2.ReposService/GetRepo', field(1, repo.uid));
    same(answer.code, 0, 'code');
    that(answer.type.startsWith('application/grpc'), `content-type ${answer.type}`);
    const found = fields(answer.bytes);
    same([text(found, 1), text(found, 2), text(found, 3)], [repo.uid, repo.name, 'words'], 'uid, name, description');
    same(Number(fields(found[11][0])[1][0]), Math.floor(Date.parse(repo.createTime) / 1000), 'create_time');
  });
  await check('the v2beta1 package answers like v2', async () => {
    const [now, before] = [await call('registry.v2.ReposService/GetRepo', field(1, repo.uid)), await call('registry.v2beta1.ReposService/GetRepo', field(1, repo.uid))];
    same([before.code, before.bytes.toString('hex')], [now.code, now.bytes.toString('hex')], 'answer');
  });
  await check('ListRepos pages and counts', async () => {
    await w.repo(group);
    const scope = field(1, field(3, group));
    const first = fields((await call('registry.v2.ReposService/ListRepos', Buffer.concat([scope, number(4, 1)]))).bytes);
    same([first[1].length, Number(first[3][0])], [1, 2], 'rows and total_count');
    const second = fields((await call('registry.v2.ReposService/ListRepos', Buffer.concat([scope, number(4, 1), field(5, text(first, 2))]))).bytes);
    same([second[1].length, text(second, 2)], [1, ''], 'rows and next_page_token of the last page');
  });
  await check('CreateRepo and DeleteRepo', async () => {
    const name = unique('frames');
    const made = fields((await call('registry.v2.ReposService/CreateRepo', Buffer.concat([field(1, group), field(2, field(2, name))]))).bytes);
    same(text(made, 2), name, 'name');
    same((await w.owner.get(`/registry/v2/repos/${text(made, 1)}`)).json?.name, name, 'name by REST');
    const gone = await call('registry.v2.ReposService/DeleteRepo', field(1, text(made, 1)));
    same([gone.code, gone.bytes.length], [0, 0], 'code and length of the message');
  });
  await check('UpdateRepo by a mask', async () => {
    const message = Buffer.concat([field(1, Buffer.concat([field(1, repo.uid), field(2, 'ignored'), field(3, 'changed')])), field(2, field(1, 'description'))]);
    const found = fields((await call('registry.v2.ReposService/UpdateRepo', message)).bytes);
    same([text(found, 2), text(found, 3)], [repo.name, 'changed'], 'name and description');
  });
  await check('v1 packages answer too', async () => {
    const found = fields((await call('registry.Registry/ListRepos', field(3, repo.uid))).bytes);
    same(text(fields(found[1][0]), 1), repo.uid, 'id');
  });
  await check('NOT_FOUND carries ErrorInfo and ResourceInfo', async () => {
    const uid = absentIn(group);
    const answer = await call('registry.v2.ReposService/GetRepo', field(1, uid));
    same([answer.http, answer.code], [200, 5], 'HTTP status and code');
    const detail = (type) => answer.details.find((d) => d.type === `google.rpc.${type}`)?.fields;
    same([text(detail('ErrorInfo'), 1), text(detail('ErrorInfo'), 2)], ['NOT_FOUND', 'registry.chainguard.dev'], 'reason and domain');
    same([text(detail('ResourceInfo'), 1), text(detail('ResourceInfo'), 2)], ['registry.chainguard.dev/Repo', uid], 'type and name');
  });
  await check('a blocked delete carries PreconditionFailure', async () => {
    const answer = await call('iam.v2.GroupsService/DeleteGroup', field(1, group));
    same(answer.code, 9, 'code');
    that(answer.details.some((d) => d.type === 'google.rpc.PreconditionFailure'), 'no PreconditionFailure');
  });
  await check('UNAUTHENTICATED, PERMISSION_DENIED, INVALID_ARGUMENT, UNIMPLEMENTED', async () => {
    same((await call('iam.v2.GroupsService/ListGroups', empty, w.nobody)).code, 16, 'without a token');
    same((await call('iam.v2.GroupsService/GetGroup', field(1, group), w.stranger)).code, 7, 'as a stranger');
    same((await call('iam.v2.GroupsService/GetGroup', empty)).code, 3, 'with an empty uid');
    same((await call('iam.v2.GroupsService/Levitate', empty)).code, 12, 'for an unknown method');
    same((await call('iam.v9.GroupsService/GetGroup', empty)).code, 12, 'for an unknown package');
    same((await call('iam.v2.GroupsService/GetGroup', Buffer.from([0x0a, 0xff]))).code !== 0, true, 'broken bytes are refused');
  });
  await check('a name written in a non-ASCII error message survives', async () => {
    const answer = await call('iam.v2.GroupsService/CreateGroup', Buffer.concat([field(1, group), field(2, field(2, 'ünïcödé'))]));
    same(answer.code, 3, 'code');
    that(answer.message.length > 0, 'no message');
  });
}
