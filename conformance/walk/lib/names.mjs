import { randomBytes } from 'node:crypto';

export const isUidp = (text) => /^[0-9a-f]{40}(\/[0-9a-f]{16})*$/.test(text);
export const absentIn = (parent) => `${parent}/${randomBytes(8).toString('hex')}`;
export const absentRoot = () => randomBytes(20).toString('hex');
export const unique = (prefix) => `${prefix}-${randomBytes(4).toString('hex')}`;
// A timestamp in nanoseconds: JSON may give it 0, 3, 6 or 9 decimals.
export function instant(timestamp) {
  const [seconds, fraction = ''] = timestamp.replace('Z', '').split('.');
  return BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}
export const pause = (ms) => new Promise((done) => setTimeout(done, ms));
export const leaf = (uid) => uid.slice(uid.lastIndexOf('/') + 1);
