import { Fault, type FieldError } from '../../domain/fault.ts';
import { isJsonObject } from '../../domain/json_object.ts';
import { LIMITS } from '../../domain/limits.ts';
import { parseJson } from '../pipeline/body.ts';

/** The body of a search. */
export interface SearchRequest {
  readonly filter: string | undefined;
  readonly limit: number | undefined;
  readonly offset: number | undefined;
}

/** Reads the body of a search. Throws Fault `malformed` if it is not JSON, `invalid` if it is not a search. */
export function readSearch(body: string): SearchRequest {
  const fieldErrors: FieldError[] = [];
  const { filter, page } = membersOfObject(parseJson(body), 'body', fieldErrors);
  const { limit, offset } = page === undefined ? {} : membersOfObject(page, 'page', fieldErrors);
  const number = (field: string, value: unknown, [min, max]: readonly [number, number]) => {
    if (value === undefined) return undefined;
    if (Number.isInteger(value) && Number(value) >= min && Number(value) <= max) return Number(value);
    fieldErrors.push({ field, rule: `must be a whole number from ${min} to ${max}` });
    return undefined;
  };
  if (filter !== undefined && typeof filter !== 'string') {
    fieldErrors.push({ field: 'filter', rule: 'must be a string' });
  }
  const request = {
    filter: typeof filter === 'string' ? filter : undefined,
    limit: number('page.limit', limit, [1, LIMITS.pageRecordsMax]),
    offset: number('page.offset', offset, [0, LIMITS.pageOffsetMax]),
  };
  if (fieldErrors.length > 0) throw new Fault('invalid', fieldErrors);
  return request;
}

function membersOfObject(
  value: unknown,
  field: string,
  fieldErrors: FieldError[],
): Readonly<Record<string, unknown>> {
  if (isJsonObject(value)) return { ...value };
  fieldErrors.push({ field, rule: 'must be a JSON object' });
  return {};
}
