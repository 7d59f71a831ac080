// Loaded before npm: its `audit signatures` asks Sigstore's public repository for the keys of a registry first, which a test does
// not reach. That it knows no other registry is what npm would see there; all else of npm is its own.
const Module = require('node:module');

const load = Module._load;
Module._load = function (request, ...more) {
  const loaded = load.call(this, request, ...more);
  if (request !== '@sigstore/tuf') return loaded;
  const getTarget = async (name) => {
    throw Object.assign(new Error(`${name} is not there`), { code: 'TUF_FIND_TARGET_ERROR' });
  };
  return { ...loaded, initTUF: async () => ({ getTarget }) };
};
