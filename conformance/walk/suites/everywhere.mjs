// Rules that hold for every answer, as seen over the whole walk.
import { check, same, that } from '../lib/check.mjs';
import { offences, seen } from '../lib/api.mjs';

export const title = 'Rules for every answer';

export async function run() {
  const found = byRule(offences);
  const rules = ['no deprecation or sunset header', 'a body is JSON', 'a body is declared as application/json', 'no internal error', 'an error has a body', 'code is a number, message a string, details an array'];
  for (const rule of rules) {
    await check(`${rule} (${seen.answers} answers, ${seen.errors} errors)`, () => {
      const broken = found.get(rule) ?? [];
      same(broken.length, 0, `offences, the first at ${broken[0]?.where}`);
    });
    found.delete(rule);
  }
  await check('names, times and details keep to the document', () =>
    that(found.size === 0, [...found].slice(0, 6).map(([rule, list]) => `${rule}: ${list.length}, first at ${list[0].where}`).join('; ')));
}

function byRule(list) {
  const map = new Map();
  for (const entry of list) map.set(entry.rule, [...(map.get(entry.rule) ?? []), entry]);
  return map;
}
