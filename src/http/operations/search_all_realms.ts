import { z } from 'zod';
import type { KeyedRecord, ListRequest, Store } from '../../directory/store.ts';
import { Fault, overloaded } from '../../domain/fault.ts';
import { type FilterCondition, type ParsedFilter, parseFilter } from '../../domain/filter/filter.ts';
import type { Clock, Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Principal } from '../../domain/principal.ts';
import type { Key, LookupRules, Resource } from '../../domain/resource.ts';
import { violatedRule } from '../../domain/rule.ts';
import { filterExample } from '../openapi/examples.ts';
import { allRealmsSchema } from '../openapi/schemas.ts';
import { parseJson, readBody } from '../pipeline/body.ts';
import type { Call, Stage } from '../pipeline/call.ts';
import { searchAllRealmsPattern } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import { itemPresenterOf } from '../pipeline/present.ts';
import { NEWEST_FIRST } from '../pipeline/query.ts';
import { authorizeRead, type ListDeps, pageReply } from './lists.ts';
import { pageAnswer, recordOperation, schemaOf } from './record_operation.ts';
import { inBody } from './reverse_lookup.ts';
import { readableRealms, type SearchRealm, searchRealmByRealm } from './search_realm_by_realm.ts';

/** The body of a search across all realms. */
const searchRequestSchema = z
  .object({
    filter: z.string().min(1).max(LIMITS.filterBytesMax),
    page: z
      .object({
        limit: z.int().min(1).max(LIMITS.pageRecordsMax).optional(),
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

export interface SearchAllDeps extends ListDeps {
  readonly store: ListDeps['store'] & Pick<Store, 'distinctValues'>;
  readonly clock: Clock;
}

/**
 * A search in every realm that the token may read: authentication (401), scope (403), filter (400). The realms are searched one
 * after another by an index, in the order of their IDs. After LIMITS.searchRealmsMax realms or LIMITS.searchMsMax the response
 * names the realm to continue after, and the realm whose matches did not all fit.
 */
export function searchAllRealms(resource: Resource, rules: LookupRules): Operation<SearchAllDeps> {
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

function searchStage(resource: Resource, rules: LookupRules, deps: SearchAllDeps): Stage {
  const present = itemPresenterOf(resource, { ...deps, includesParent: true });
  let inFlight = 0;

  async function answer(call: Call): Promise<string> {
    const { filter: text, page = {} } = readAllRealmsRequest(call.body ?? '');
    const filter = inBody(() => readFilter(text, rules));
    const limit = page.limit ?? deps.pageLength;
    const seek = realmSearch(resource, filter, limit, deps.store);
    const order = readableRealms(
      call.principal as Principal,
      page.after_realm as Uuid | undefined,
      deps.store,
    );
    const found = await searchRealmByRealm(order, seek, limit, deps.clock);
    const items = found.items.map(({ record, key }) => present(record, key)).join(',');
    const { searched, next, cut } = found;
    const meta = JSON.stringify({ page: { limit }, realms: { searched, next, cut } });
    return `{"data":[${items}],"meta":${meta},${NO_LINKS}}`;
  }

  return async (call) => {
    if (inFlight >= LIMITS.searchesAtOnceMax) throw overloaded('CONCURRENCY_LIMIT');
    inFlight += 1;
    try {
      return pageReply(call, await answer(call));
    } finally {
      inFlight -= 1;
    }
  };
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

/** Makes the function that searches one realm, with the cheapest query for the filter. */
function realmSearch(
  resource: Resource,
  filter: ParsedFilter,
  limit: number,
  store: SearchAllDeps['store'],
): SearchRealm {
  const values = new Map(
    filter
      .flat()
      .map((condition) => [condition.member, condition.kind === 'one_of' ? condition.values[0] : undefined]),
  );
  const members = [...values.keys()];
  const set = setOf(resource, members);
  const sole = (found: KeyedRecord | undefined) => (found ? [found] : []);
  if (set && isUniqueSet(resource, set)) {
    const lookupKey = { members: set, values: set.map((member) => values.get(member) as string) };
    return async (realm) => sole(await store.find(resource, realm, lookupKey));
  }
  const id = values.get('id');
  if (id !== undefined) {
    return async (realm) => {
      const key: Key = [realm, id as Uuid];
      const record = await store.get(resource, key);
      return sole(record && { key, record });
    };
  }
  // The unique index begins with the member that the filter lacks.
  const [missing] = resource.unique.find(([, ...rest]) => areSame(rest, members)) ?? [];
  if (missing && !set) return (realm) => findByEachValue(realm, { resource, missing, values }, store);
  const listing: ListRequest = {
    filter,
    sort: NEWEST_FIRST,
    page: { kind: 'after', after: undefined, limit: limit + 1 },
  };
  return async (realm) => (await store.list(resource, [realm], listing))?.items ?? [];
}

/** The set of the description that these members are, in its order. */
function setOf({ reverseLookup }: Resource, members: readonly string[]): readonly string[] | undefined {
  return reverseLookup?.by.find((set) => areSame(set, members));
}

/** Whether at most one record of a realm has given values of these members. */
function isUniqueSet({ unique }: Resource, members: readonly string[]): boolean {
  return [['id'], ...unique].some((set) => areSame(set, members));
}

interface IncompleteLookup {
  readonly resource: Resource;
  readonly missing: string;
  readonly values: ReadonlyMap<string, unknown>;
}

/** Looks up with each value that the realm's records have in the member that the filter lacks. */
async function findByEachValue(
  realm: Uuid,
  { resource, missing, values }: IncompleteLookup,
  store: SearchAllDeps['store'],
): Promise<readonly KeyedRecord[]> {
  const members = setOf(resource, [missing, ...values.keys()]) ?? [];
  const found: KeyedRecord[] = [];
  for (const value of await store.distinctValues(resource, realm, missing, LIMITS.searchIssuersMax)) {
    const lookupKey = {
      members,
      values: members.map((member) => (values.get(member) as string | undefined) ?? value),
    };
    const one = await store.find(resource, realm, lookupKey);
    if (one) found.push(one);
  }
  return found;
}
