import { randomBytes } from 'node:crypto';

export const isUidp = (text) => /^[0-9a-f]{40}(\/[0-9a-f]{16})*$/.test(text);
export const absentIn = (parent) => `${parent}/${randomBytes(8).toString('hex')}`;
export const absentRoot = () => randomBytes(20).toString('hex');
export const unique = (prefix) => `${prefix}-${randomBytes(4).toString('hex')}`;
export const leaf = (uid) => uid.slice(uid.lastIndexOf('/') + 1);
