import { z } from 'zod';
import type { KeyedRecord, MaybePromise, RealmSearchPage } from '../../directory/store.ts';
import { Fault } from '../../domain/fault.ts';
import { type FilterCondition, type ParsedFilter, parseFilter } from '../../domain/filter/filter.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Principal } from '../../domain/principal.ts';
import type { LookupRules, Resource } from '../../domain/resource.ts';
import { violatedRule, wholeNumber } from '../../domain/rule.ts';
import { filterExample } from '../openapi/examples.ts';
import { allRealmsSchema } from '../openapi/schemas.ts';
import { parseJson, readBody } from '../pipeline/body.ts';
import type { Stage } from '../pipeline/call.ts';
import { searchAllRealmsPattern } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import { itemPresenterOf } from '../pipeline/present.ts';
import { authorizeRead, type ListDeps, pageReply } from './lists.ts';
import { pageAnswer, recordOperation, schemaOf } from './record_operation.ts';
import { inBody } from './reverse_lookup.ts';

/** The body of a search across all realms. */
const searchRequestSchema = z
  .object({
    filter: z.string().min(1).max(LIMITS.filterBytesMax),
    page: z
      .object({
        limit: wholeNumber(1, LIMITS.pageRecordsMax).optional(),
        after_realm: z
          .string()
          .regex(/^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/, 'must be the identifier of a realm')
          .toLowerCase()
          .optional()
          .meta({
            format: 'uuid',
            description: 'Continue after this realm: `next` of the previous response.',
          }),
      })
      .optional(),
  })
  .meta({ id: 'search_everywhere' });

type AllRealmsRequest = z.output<typeof searchRequestSchema>;

/**
 * A search in every realm that the token may read: authentication (401), scope (403), filter (400). A filter that an index
 * without the realm answers is one statement; any other is one statement for LIMITS.searchRealmsMax realms, and the response
 * names the realm to continue after. It also names the realm whose matches did not all fit.
 */
export function searchAllRealms(resource: Resource, rules: LookupRules): Operation<ListDeps> {
  return recordOperation(resource, {
    name: `search-every-${resource.name}`,
    method: 'POST',
    path: searchAllRealmsPattern(resource),
    right: 'read',
    stages: (deps) => [...authorizeRead(resource, deps), readBody, searchStage(resource, rules, deps)],
    document: ({ foundItems, examples }) => ({
      summary: `Find ${resource.name} records in every realm that the token may read.`,
      isExtension: true,
      description: `${resource.summary} The filter is one of: ${filterForms(rules)}.`,
      body: {
        schema: searchRequestSchema,
        example: { filter: filterExample(resource, rules.by[0] ?? []), page: { limit: 25 } },
      },
      success: pageAnswer(allRealmsSchema(resource, schemaOf(foundItems, resource)), {
        found: examples.allRealms(resource),
      }),
    }),
  });
}

function searchStage(
  resource: Resource,
  rules: LookupRules,
  { store, pageLength, ...context }: ListDeps,
): Stage {
  const present = itemPresenterOf(resource, { ...context, includesParent: true });
  return async (call) => {
    const { filter: text, page = {} } = readAllRealmsRequest(call.body ?? '');
    const filter = inBody(() => readFilter(text, rules));
    const limit = page.limit ?? pageLength;
    const { realms } = call.principal as Principal;
    const only = realms === '*' ? undefined : [...realms];
    const searchAfter = (after: Uuid | undefined, count: number) =>
      store.searchRealms(resource, { filter, only, after, limit: count });
    const found = await pageOfRealms(searchAfter, page.after_realm as Uuid | undefined, limit);
    const items = found.items.map(({ record, key }) => present(record, key)).join(',');
    const meta = JSON.stringify({ page: { limit }, realms: { next: found.next, cut: found.cut } });
    return pageReply(call, `{"data":[${items}],"meta":${meta},${NO_LINKS}}`);
  };
}

interface RealmsPage {
  readonly items: readonly KeyedRecord[];
  /** The realm to continue after; null if no later realm can have matches. */
  readonly next: Uuid | null;
  /** The last realm of the page, if it has more matches than fit; otherwise null. */
  readonly cut: Uuid | null;
}

async function pageOfRealms(
  searchAfter: (after: Uuid | undefined, count: number) => MaybePromise<RealmSearchPage>,
  after: Uuid | undefined,
  limit: number,
): Promise<RealmsPage> {
  const { items: found, through = null } = await searchAfter(after, limit + 1);
  const items = found.slice(0, limit);
  const [last, further] = [items.at(-1)?.key[0] ?? null, found[limit]?.key[0]];
  if (last === null || further === undefined) return { items, next: through, cut: null };
  if (further !== last) return { items, next: last, cut: null };
  const later = await searchAfter(last, 1);
  return { items, next: later.items.length > 0 || later.through ? last : null, cut: last };
}

const NO_LINKS = '"links":{"current":null,"first":null,"last":null,"next":null,"prev":null}';

/** Throws Fault `malformed` if the body is not JSON, `invalid` if it is not a search. */
function readAllRealmsRequest(body: string): AllRealmsRequest {
  const value = parseJson(body);
  const parsed = searchRequestSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const fieldErrors = parsed.error.issues.map((issue) => ({
    field: issue.path.length === 0 ? 'body' : issue.path.join('.'),
    rule: violatedRule(issue),
  }));
  throw new Fault('invalid', fieldErrors);
}

/** Reads a filter that names one of the sets, each member with one value or prefix. Throws Fault `invalid_query`. */
function readFilter(text: string, { filterables, by }: LookupRules): ParsedFilter {
  const filter = parseFilter(text, filterables);
  const members = filter.flat().map(({ member }) => member);
  const isNarrowed = filter.every((group) => group.length === 1 && group.every(isIndexed));
  if (isNarrowed && by.some((set) => areSame(set, members))) return filter;
  throw new Fault('invalid_query', [
    { field: 'filter', rule: `must be one of: ${filterForms({ filterables, by })}` },
  ]);
}

/** Whether an index answers the condition: it names a value, or a prefix of two characters or more. */
function isIndexed(condition: FilterCondition): boolean {
  return condition.kind !== 'pattern' || (condition.part === 'prefix' && condition.text.length >= 2);
}

/** Whether two sets have the same members. */
function areSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((member) => other.includes(member));
}

/** The accepted filters of the search, as texts. */
function filterForms({ filterables, by }: LookupRules): string {
  const written = (member: string) => {
    const isPattern = filterables[member]?.operators.some((operator) => operator === 'like');
    return `eq(${member},…)${isPattern ? ` or like(${member},…*) with 2 characters or more` : ''}`;
  };
  return by.map((members) => members.map(written).join(':')).join('; ');
}
