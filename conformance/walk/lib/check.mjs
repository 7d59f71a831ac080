// A check is a name and a function that throws when the server is wrong.
// Each one prints a single line.
import { isDeepStrictEqual } from 'node:util';

let passed = 0;
let failed = 0;
let lastExchange = () => '';

export const explainWith = (fn) => { lastExchange = fn; };

export function section(title) {
  console.log(`\n${title}`);
}

export async function check(name, body) {
  try {
    await body();
    passed += 1;
    console.log(`  ok    ${name}`);
  } catch (error) {
    failed += 1;
    const why = error instanceof Wrong ? error.message : (error.stack ?? String(error)).split('\n').slice(0, 2).join(' ');
    console.log(`  FAIL  ${name}: ${why.replaceAll('\n', ' ')} [${lastExchange()}]`);
  }
}

// Prints the totals and returns the exit status.
export function finish() {
  console.log(`\n${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

class Wrong extends Error {}

const show = (value) => {
  const text = typeof value === 'string' ? JSON.stringify(value) : JSON.stringify(value) ?? String(value);
  return text.length > 400 ? `${text.slice(0, 400)}…` : text;
};

export function same(actual, expected, what = 'value') {
  if (!isDeepStrictEqual(actual, expected)) throw new Wrong(`${what} is ${show(actual)}, expected ${show(expected)}`);
}

export function that(condition, what) {
  if (!condition) throw new Wrong(what);
}

export function oneOf(actual, choices, what = 'value') {
  if (!choices.includes(actual)) throw new Wrong(`${what} is ${show(actual)}, expected one of ${show(choices)}`);
}

export function matches(actual, pattern, what = 'value') {
  if (typeof actual !== 'string' || !pattern.test(actual)) throw new Wrong(`${what} is ${show(actual)}, expected to match ${pattern}`);
}

// The object has at least these members with these values.
export function has(actual, expected, what = 'body') {
  for (const [key, value] of Object.entries(expected)) same(actual?.[key], value, `${what}.${key}`);
}
