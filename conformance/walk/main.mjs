// Walks the Platform API of a running server over plain HTTP.
//
//   BASE_URL=… OPERATOR_TOKEN=… PROVIDER=…/provider.json node main.mjs [SUITE…]
import { Api, lastExchange } from './lib/api.mjs';
import { check, explainWith, finish, section } from './lib/check.mjs';
import { IdentityProvider } from './lib/idp.mjs';
import { makeWorld } from './lib/world.mjs';

const { BASE_URL, OPERATOR_TOKEN, PROVIDER } = process.env;
if (!BASE_URL || !OPERATOR_TOKEN || !PROVIDER) {
  console.error('BASE_URL, OPERATOR_TOKEN and PROVIDER must be set');
  process.exit(2);
}
// `everywhere` reports what the other suites saw, so it comes last.
const all = ['exchange', 'refusals', 'known', 'v1', 'groups', 'roles', 'identities', 'bindings', 'repos', 'masks', 'paging', 'hierarchy', 'errors', 'versions', 'grpc', 'everywhere'];
const chosen = process.argv.length > 2 ? process.argv.slice(2) : all;

explainWith(lastExchange);
const base = BASE_URL.replace(/\/$/, '');
const idp = new IdentityProvider(PROVIDER);
const world = await makeWorld({ base, idp, operator: new Api(base, OPERATOR_TOKEN) }).catch((error) => {
  console.log(`FAIL  setting up: ${error.message} [${lastExchange()}]`);
  console.log('\n0 passed, 1 failed');
  process.exit(1);
});
for (const name of chosen) {
  const { title, run } = await import(`./suites/${name}.mjs`);
  section(title);
  await run(world).catch((error) => check('the rest of this part', () => { throw error; }));
}
process.exit(finish());
