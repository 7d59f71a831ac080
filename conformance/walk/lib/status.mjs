// Expectations about errors, which are google.rpc.Status with typed details.
import { has, same, that } from './check.mjs';

const prefix = 'type.googleapis.com/google.rpc.';

export const detail = (answer, type) => answer.json?.details?.find((d) => d['@type'] === prefix + type);

export function refused(answer, http, code) {
  same(answer.status, http, 'HTTP status');
  same(answer.json?.code, code, 'code');
  that(answer.json?.message?.length > 0, 'the message is empty');
}

// A v2 error: status, code and ErrorInfo with reason and domain.
export function v2error(answer, http, code, reason, domain) {
  refused(answer, http, code);
  const info = detail(answer, 'ErrorInfo');
  that(info, 'no ErrorInfo detail');
  if (reason) same(info.reason, reason, 'ErrorInfo.reason');
  if (domain) same(info.domain, domain, 'ErrorInfo.domain');
  return info;
}

export function notFound(answer, domain, resourceType, resourceName) {
  v2error(answer, 404, 5, 'NOT_FOUND', domain);
  const resource = detail(answer, 'ResourceInfo');
  that(resource, 'no ResourceInfo detail');
  has(resource, { resourceType, resourceName }, 'ResourceInfo');
}

export function forbidden(answer, domain) {
  return v2error(answer, 403, 7, 'PERMISSION_DENIED', domain);
}

const snake = (name) => name.replaceAll(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);

// BadRequest names every one of these fields, in one answer.
export function badFields(answer, domain, ...fields) {
  v2error(answer, 400, 3, undefined, domain);
  const violations = detail(answer, 'BadRequest')?.fieldViolations;
  that(Array.isArray(violations), 'no BadRequest detail');
  for (const violation of violations) that(violation.field && violation.description, 'a violation lacks its field or description');
  for (const field of fields) {
    const hit = violations.filter((v) => v.field.split(/[.[]/).map(snake).includes(snake(field)));
    same(hit.length, 1, `violations of ${field} among ${JSON.stringify(violations.map((v) => v.field))}`);
  }
}

export function blocked(answer, domain, type) {
  v2error(answer, 400, 9, undefined, domain);
  const violations = detail(answer, 'PreconditionFailure')?.violations;
  that(violations?.length > 0, 'no PreconditionFailure detail');
  if (type) same(violations[0].type, type, 'violation type');
  that(violations[0].description?.length > 0, 'a violation lacks its description');
}

// v1: a bare status without details.
export function bare(answer, http, code) {
  refused(answer, http, code);
  same(answer.json.details, [], 'details');
}
