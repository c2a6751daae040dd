import { z } from 'zod';
import { Fault, type FieldError } from '../../model/fault.ts';
import { violatedRule } from '../../model/rule.ts';
import { dataOf, documentOf } from './body.ts';

/** Reads the `data` of a body. Throws Fault `invalid` with all field errors. */
export function readData<S extends z.ZodObject>(schema: S, body: string): z.output<S> {
  return checkData(schema, dataOf(body));
}

/** Reads a body without `data`. Throws Fault `invalid` with all field errors. */
export function readDocument<S extends z.ZodObject>(schema: S, body: string): z.output<S> {
  return checkData(schema, documentOf(body), []);
}

/** Throws Fault `invalid` with all field errors. `within` is the place of the data in the body. */
export function checkData<S extends z.ZodObject>(
  schema: S,
  data: object,
  within: readonly string[] = ['data'],
): z.output<S> {
  const parsed = schema.safeParse(data);
  if (parsed.success) return parsed.data;
  const fieldErrors = parsed.error.issues.map((issue): FieldError => {
    const isMissing = issue.code === 'invalid_type' && valueAt(data, issue.path) === undefined;
    return {
      field: [...within, ...issue.path].join('.'),
      rule: isMissing || isMissingChoice(issue, data) ? 'is missing' : violatedRule(issue),
    };
  });
  throw new Fault('invalid', fieldErrors);
}

/** Whether the issue is a missing value of a union or a refined type, whose issues do not name the type. */
function isMissingChoice({ code, path }: z.core.$ZodIssue, data: object): boolean {
  return (code === 'invalid_union' || code === 'custom') && valueAt(data, path) === undefined;
}

function valueAt(data: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce((at, name) => (at as Record<PropertyKey, unknown> | undefined)?.[name], data);
}

/**
 * Reads the parameters of a query. Throws Fault `invalid_query` that names every one that is invalid or given twice.
 * Unknown parameters are ignored.
 */
export function readParameters<S extends z.ZodObject>(schema: S, url: string): z.output<S> {
  const given = new URLSearchParams(/\?([^#]*)/.exec(url)?.[1] ?? '');
  const fieldErrors: FieldError[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, each] of Object.entries(schema.shape as Record<string, z.ZodType>)) {
    const [text, ...more] = given.getAll(name);
    if (text === undefined) continue;
    const parsed = each.safeParse(isNumber(each) && NUMBER.test(text) ? Number(text) : text);
    const rules = [
      ...(more.length > 0 ? ['must be given at most once'] : []),
      ...(parsed.error?.issues ?? []).map(violatedRule),
    ];
    fieldErrors.push(...rules.map((rule) => ({ field: name, rule })));
    values[name] = parsed.data;
  }
  if (fieldErrors.length > 0) throw new Fault('invalid_query', fieldErrors);
  return values as z.output<S>;
}

const NUMBER = /^-?\d{1,15}$/;

function isNumber(schema: z.core.$ZodType): boolean {
  return schema instanceof z.ZodOptional ? isNumber(schema.unwrap()) : schema instanceof z.ZodNumber;
}
