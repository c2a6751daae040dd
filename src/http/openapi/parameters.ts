import { z } from 'zod';
import type { Filterables } from '../../domain/filter/filter.ts';
import { LIMITS } from '../../domain/limits.ts';
import { lineage, type Resource } from '../../domain/resource.ts';
import { paramNames } from '../pipeline/links.ts';
import { SORT_KEYS } from '../pipeline/paging.ts';
import { exampleIdOf, filterExample, INSTALLATION } from './examples.ts';
import { EXTENSION } from './responses.ts';
import { idSchema } from './schemas.ts';

type Shape = Record<string, z.ZodType>;

interface ParameterNotes {
  /** Its name among the components. */
  readonly id: string;
  readonly description: string;
  readonly example: unknown;
  /** The family does not have it. */
  readonly isExtension?: boolean;
}

function parameter(
  schema: z.ZodType,
  { id, description, example, isExtension: isOurs = false }: ParameterNotes,
): z.ZodType {
  return schema.optional().meta({ param: { id, description, example, ...(isOurs ? EXTENSION : {}) } });
}

/** Headers that an operation reads, by their names. */
export const REQUEST_HEADERS = {
  'X-Request-Id': parameter(z.string().min(1).max(LIMITS.requestIdCharactersMax), {
    id: 'x-request-id',
    description: 'Letters, digits and `. _ -`; answered and logged. Any other is ignored.',
    example: 'checkout-42',
    isExtension: true,
  }),
  'If-None-Match': parameter(z.string().min(1), {
    id: 'if-none-match',
    description: 'ETags of the record, or `*`: 304 where it still carries one of them (RFC 9110, 13.1.2).',
    example: '"17a4c09be25d6f83-00000000"',
    isExtension: true,
  }),
  'If-Match': parameter(z.string().min(1), {
    id: 'if-match',
    description:
      'ETags of the record, or `*`: 412 where it carries none of them any more (RFC 9110, 13.1.1).',
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
        'A key of your own for this request. Sent again with it within 24 hours, the request is answered as the first ' +
        'time and nothing is created again; with another body 422, while the first is being answered 409.',
      example: 'b1946ac92492d234',
      isExtension: true,
    },
  ),
} as const;

/** The name of a header that some operation reads. */
export type RequestHeader = keyof typeof REQUEST_HEADERS;

export function headersNamed(names: readonly RequestHeader[]): z.ZodObject {
  return z.object(Object.fromEntries(names.map((name) => [name, REQUEST_HEADERS[name]])));
}

/** Which page of a list. */
export const PAGE_PARAMETERS: Shape = {
  'page[limit]': parameter(z.int().min(1).max(LIMITS.pageRecordsMax), {
    id: 'page-limit',
    description: 'How many records a page has at most; 25 unless the service is told otherwise.',
    example: 25,
  }),
  'page[offset]': parameter(z.int().min(0).max(LIMITS.pageOffsetMax), {
    id: 'page-offset',
    description: 'How many records to pass over. What lies beyond the bound is read by `page[after]`.',
    example: 0,
  }),
  'page[after]': parameter(z.string(), {
    id: 'page-after',
    description:
      'Empty to begin, then what stands in `links.next`. Such a page is not counted, stays right while records are ' +
      'added, and costs the same however deep it is. Not beside `page[offset]`.',
    example: '',
    isExtension: true,
  }),
};

const sort = parameter(z.enum(SORT_KEYS.flatMap((by) => [by, `-${by}` as const])), {
  id: 'sort',
  description: 'The order: `-` before a key for the highest first. Newest first unless it is said.',
  example: '-created_at',
});

export const FILTER_PARAMETER = z.string().min(1).max(LIMITS.filterBytesMax);

/** Parameters of a list; those of a resource without filters ignore `filter` and `sort`. */
export function listParameters(resource: Resource): z.ZodObject {
  const { filterables } = resource;
  if (!filterables) return z.object(PAGE_PARAMETERS);
  const folded = Object.keys(filterables).filter((name) => filterables[name]?.compared === 'folded');
  const filter = FILTER_PARAMETER.optional().meta({
    param: {
      description: filterDescription(filterables),
      example: filterExample(resource, folded.slice(0, 1)),
    },
  });
  return z.object({ filter, sort, ...PAGE_PARAMETERS });
}

function filterDescription(filterables: Filterables): string {
  const attributes = Object.entries(filterables).map(
    ([name, { operators }]) => `\`${name}\`: ${operators.join(', ')}`,
  );
  return `Terms like \`eq(name,value)\`, joined by \`:\`, alternatives as \`(a|b)\`. ${attributes.join('; ')}.`;
}

/** The identifiers of a path, from the realm down. */
export function pathParameters(resource: Resource, names: readonly string[]): z.ZodObject {
  const line = lineage(resource);
  const all = paramNames(resource);
  return z.object(
    Object.fromEntries(
      names.map((name) => {
        const owner = line[all.indexOf(name)] ?? resource;
        const description = `The identifier of the ${owner.name}, in any letter case.`;
        return [name, idSchema.meta({ param: { description, example: exampleIdOf(owner) } })];
      }),
    ),
  );
}

/** What stands in braces in a further link of a record. */
export function linkParameters(resource: Resource, names: readonly string[]): z.ZodObject {
  const [realm = resource] = lineage(resource);
  const examples: Readonly<Record<string, string>> = {
    store: INSTALLATION,
    realm: exampleIdOf(realm),
    id: exampleIdOf(resource),
  };
  return z.object(
    Object.fromEntries(names.map((name) => [name, z.string().meta({ param: { example: examples[name] } })])),
  );
}
