import { z } from 'zod';
import type { Filterables } from '../../model/filter/filter.ts';
import { LIMITS } from '../../model/limits.ts';
import { ancestry, type Resource } from '../../model/resource.ts';
import { itemPattern, parameterNames } from '../pipeline/links.ts';
import { SORT_KEYS } from '../pipeline/paging.ts';
import { exampleIdOf, filterExample, INSTALLATION } from './examples.ts';
import { EXTENSION } from './responses.ts';
import { idSchema } from './schemas.ts';

type Shape = Record<string, z.ZodType>;

interface ParameterNotes {
  /** Its component ID. */
  readonly id: string;
  readonly description: string;
  readonly example: unknown;
  /** Not part of the API that authrealm is compatible with. */
  readonly isExtension?: boolean;
}

/** An optional parameter or request header. */
export function parameter(schema: z.ZodType, { isExtension = false, ...notes }: ParameterNotes): z.ZodType {
  return schema.optional().meta({ param: { ...notes, ...(isExtension ? EXTENSION : {}) } });
}

/** Request headers by name. */
export const REQUEST_HEADERS = {
  'X-Request-Id': parameter(z.string().min(1).max(LIMITS.requestIdCharactersMax), {
    id: 'x-request-id',
    description:
      'Your request ID: letters, digits and `. _ -`. It is returned and logged. An invalid one is ignored.',
    example: 'checkout-42',
    isExtension: true,
  }),
  'If-None-Match': parameter(z.string().min(1), {
    id: 'if-none-match',
    description: 'ETags, or `*`: 304 if the content has one of them (RFC 9110, 13.1.2).',
    example: '"17a4c09be25d6f83-00000000"',
    isExtension: true,
  }),
  'If-Match': parameter(z.string().min(1), {
    id: 'if-match',
    description: 'The ETag of the record, or `*`: 412 if the record has another one (RFC 9110, 13.1.1).',
    example: '*',
    isExtension: true,
  }),
  'Idempotency-Key': parameter(
    z
      .string()
      .regex(/^[\x21-\x7e]+$/)
      .min(1)
      .max(LIMITS.idempotencyKeyCharactersMax),
    {
      id: 'idempotency-key',
      description:
        'A unique key for this request. Repeating the request with it within 24 hours creates nothing, and returns the record as it ' +
        'is then, or the code of the refusal. With another body it is 422; while the first request is in progress, 409.',
      example: 'b1946ac92492d234',
      isExtension: true,
    },
  ),
} as const;

/** The name of a request header. */
export type RequestHeader = keyof typeof REQUEST_HEADERS;

/** The page parameters of a list. */
export const PAGE_PARAMETERS: Shape = {
  'page[limit]': parameter(z.int().min(1).max(LIMITS.pageRecordsMax), {
    id: 'page-limit',
    description: `The maximum number of records on a page; the default is ${LIMITS.pageRecordsDefault}.`,
    example: LIMITS.pageRecordsDefault,
  }),
  'page[offset]': parameter(z.int().min(0).max(LIMITS.pageOffsetMax), {
    id: 'page-offset',
    description: 'The number of records to skip. Use `page[after]` beyond the maximum.',
    example: 0,
  }),
  'page[after]': parameter(z.string(), {
    id: 'page-after',
    description:
      'Empty for the first page, then the value in `links.next`. Such pages have no totals, do not shift when records are ' +
      'added, and cost the same at any depth. Not allowed with `page[offset]` or a sort by `updated_at`.',
    example: '',
    isExtension: true,
  }),
};

/** The page parameters of a list of one item at most. */
export function offsetParameters(): z.ZodObject {
  const { 'page[after]': _, ...shape } = PAGE_PARAMETERS;
  return z.object(shape);
}

const sort = parameter(z.enum(SORT_KEYS.flatMap((by) => [by, `-${by}` as const])), {
  id: 'sort',
  description: 'The sort key, with `-` for descending order. Newest first by default.',
  example: '-created_at',
});

export const FILTER_PARAMETER = z.string().min(1).max(LIMITS.filterBytesMax);

/** The parameters of a list. Lists of a resource without filters ignore `filter` and `sort`. */
export function listParameters(resource: Resource): z.ZodObject {
  const { filterables } = resource;
  if (!filterables) return z.object(PAGE_PARAMETERS);
  const folded = Object.keys(filterables).filter((name) => filterables[name]?.compared === 'folded');
  const description = filterDescription(filterables);
  const example = filterExample(resource, folded.slice(0, 1));
  const filter = FILTER_PARAMETER.optional().meta({ param: { description, example } });
  return z.object({ filter, sort, ...PAGE_PARAMETERS });
}

function filterDescription(filterables: Filterables): string {
  const attributes = Object.entries(filterables).map(
    ([name, { operators }]) => `\`${name}\`: ${operators.join(', ')}`,
  );
  return `Terms like \`eq(name,value)\`, joined by \`:\` (and), or grouped as \`(a|b)\` (or). ${attributes.join('; ')}.`;
}

/** The parameter that adds records of these resources to an answer, as the description says. */
export function includeParameter(children: readonly Resource[], description: string): z.ZodObject {
  const names = children.map(({ includedAs = '' }) => includedAs);
  const include = z
    .array(z.enum(names))
    .optional()
    .meta({ param: { style: 'form', explode: false, description, example: names, ...EXTENSION } });
  return z.object({ include });
}

/** The IDs in a path, from the realm down. */
export function pathParameters(resource: Resource, names: readonly string[]): z.ZodObject {
  const line = ancestry(resource);
  const all = parameterNames(itemPattern(resource));
  return z.object(
    Object.fromEntries(
      names.map((name) => {
        const owner = line[all.indexOf(name)] ?? resource;
        const description = `The ID of the ${owner.name}, in any letter case.`;
        return [name, idSchema.meta({ param: { description, example: exampleIdOf(owner) } })];
      }),
    ),
  );
}

/** The placeholders of a further link of a record. */
export function linkParameters(resource: Resource, names: readonly string[]): z.ZodObject {
  const [realm = resource] = ancestry(resource);
  const examples: Readonly<Record<string, string>> = {
    store: INSTALLATION,
    realm: exampleIdOf(realm),
    id: exampleIdOf(resource),
  };
  return z.object(
    Object.fromEntries(names.map((name) => [name, z.string().meta({ param: { example: examples[name] } })])),
  );
}
