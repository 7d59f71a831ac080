// Prints a workload's token from the running identity provider.
//
//   PROVIDER=…/provider.json node token.mjs CLIENT
import { IdentityProvider } from './lib/idp.mjs';

console.log(await new IdentityProvider(process.env.PROVIDER).token(process.argv[2]));
