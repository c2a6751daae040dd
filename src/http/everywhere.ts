import { z } from 'zod';
import type { Listing, Placed, Store } from '../directory/store.ts';
import { Fault, overloaded } from '../domain/fault.ts';
import { type Condition, type Filter, parseFilter } from '../domain/filter.ts';
import type { Ambient, Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Principal } from '../domain/principal.ts';
import type { Finding, Key, Resource } from '../domain/resource.ts';
import { ruleOf } from '../domain/rule.ts';
import { parseJson, readBody } from './body.ts';
import { type Answer, type Call, type Stage, walk } from './call.ts';
import { inTurn, realmsOf, type Seek } from './every_realm.ts';
import { inBody } from './finding.ts';
import { entrance, type ListingRooms, pageReply } from './lists.ts';
import { itemPresenterOf } from './present.ts';
import { NEWEST_FIRST } from './query.ts';

/** The body of a search in all realms. */
export const everywhereSchema = z
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
          .meta({ format: 'uuid', description: 'Go on behind this realm: `next` of the answer before.' }),
      })
      .optional(),
  })
  .meta({ id: 'search_everywhere' });

type Asked = z.output<typeof everywhereSchema>;

export interface EverywhereRooms extends ListingRooms {
  readonly store: ListingRooms['store'] & Pick<Store, 'leading'>;
  readonly ambient: Ambient;
}

/**
 * The path of a search in every realm that the token may read: who asks (401), may they at all (403), what for (400). One realm
 * after the other is asked by an index, in the order of their identifiers; where there are more than
 * LIMITS.searchRealmsMax, or they take longer than LIMITS.searchMsMax, the answer says behind which to go on.
 */
export function searchEverywhere(resource: Resource, everywhere: Finding, rooms: EverywhereRooms): Answer {
  const present = itemPresenterOf(resource, { ...rooms, saysParent: true });
  let underWay = 0;

  async function answer(call: Call): Promise<string> {
    const { filter: text, page = {} } = readAsked(call.body ?? '');
    const filter = inBody(() => readFilter(text, everywhere));
    const limit = page.limit ?? rooms.pageLength;
    const seek = seeking(resource, filter, limit, rooms.store);
    const order = realmsOf(call.principal as Principal, page.after_realm as Uuid | undefined, rooms.store);
    const found = await inTurn(order, seek, limit, rooms.ambient);
    const items = found.items.map(({ record, key }) => present(record, key)).join(',');
    const { searched, next } = found;
    return `{"data":[${items}],"meta":${JSON.stringify({ page: { limit }, realms: { searched, next } })},${NO_LINKS}}`;
  }

  const search: Stage = async (call) => {
    if (underWay >= LIMITS.searchesAtOnceMax) throw overloaded('PLACES_TAKEN');
    underWay += 1;
    try {
      return pageReply(call, await answer(call));
    } finally {
      underWay -= 1;
    }
  };
  return walk([...entrance(resource, rooms), readBody, search]);
}

const NO_LINKS = '"links":{"current":null,"first":null,"last":null,"next":null,"prev":null}';

/** Throws Fault `malformed` for what is no JSON, `invalid` for what is no search. */
function readAsked(body: string): Asked {
  const value = parseJson(body);
  const parsed = everywhereSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const complaints = parsed.error.issues.map((issue) => ({
    field: issue.path.length === 0 ? 'body' : issue.path.join('.'),
    rule: ruleOf(issue),
  }));
  throw new Fault('invalid', complaints);
}

/** Reads a filter that names one of the sets, each member with one value or a beginning. Throws Fault `query_invalid`. */
function readFilter(text: string, { filterables, by }: Finding): Filter {
  const filter = parseFilter(text, filterables);
  const asked = filter.map(([first, ...others]) => (first && others.length === 0 ? first : undefined));
  if (asked.every((condition) => condition && isNarrow(condition)) && by.some((set) => isOf(set, filter))) {
    return filter;
  }
  throw new Fault('query_invalid', [
    { field: 'filter', rule: `must be one of: ${everywhereWords({ filterables, by })}` },
  ]);
}

/** An index finds what it lets through. */
function isNarrow(condition: Condition): boolean {
  if (condition.kind === 'one_of') return condition.values.length === 1;
  return condition.kind === 'pattern' && condition.part === 'prefix' && condition.text.length >= 2;
}

function isOf(members: readonly string[], filter: Filter): boolean {
  const asked = filter.flatMap((group) => group.map(({ member }) => member));
  return asked.length === members.length && members.every((member) => asked.includes(member));
}

/** The filters that such a search takes, as they are written. */
export function everywhereWords({ filterables, by }: Finding): string {
  const written = (member: string) => {
    const isPattern = filterables[member]?.operators.some((operator) => operator === 'like');
    return `eq(${member},…)${isPattern ? ` or like(${member},…*) with 2 characters or more` : ''}`;
  };
  return by.map((members) => members.map(written).join(':')).join('; ');
}

/** Makes what asks one realm, by the shortest way there is. */
function seeking(resource: Resource, filter: Filter, limit: number, store: EverywhereRooms['store']): Seek {
  const values = new Map(
    filter
      .flat()
      .map((condition) => [condition.member, condition.kind === 'one_of' ? condition.values[0] : undefined]),
  );
  const id = values.get('id');
  const sole = (found: Placed | undefined) => (found ? [found] : []);
  const placed = (realm: Uuid) => {
    const key: Key = [realm, id as Uuid];
    const found = store.get(resource, key);
    const of = (record: Awaited<typeof found>) => sole(record && { key, record });
    return found instanceof Promise ? found.then(of) : of(found);
  };
  const set = soleSet(resource, [...values.keys()]);
  if (id !== undefined && resource.finding === undefined) return placed;
  if (set) {
    const sought = { members: set, values: set.map((member) => values.get(member) as string) };
    return (realm) => {
      const found = store.find(resource, realm, sought);
      return found instanceof Promise ? found.then(sole) : sole(found);
    };
  }
  const missing = missingOf(resource, [...values.keys()]);
  if (missing) return (realm) => byEach(realm, { resource, missing, values }, store);
  const listing: Listing = { filter, sort: NEWEST_FIRST, page: { kind: 'after', after: undefined, limit } };
  return (realm) => {
    const listed = store.list(resource, [realm], listing);
    return listed instanceof Promise ? listed.then((later) => later?.items ?? []) : (listed?.items ?? []);
  };
}

/** The set of the description that these members are, if at most one record of a realm says the same of it. */
function soleSet({ finding, unique }: Resource, asked: readonly string[]): readonly string[] | undefined {
  const isSame = (set: readonly string[]) =>
    set.length === asked.length && set.every((each) => asked.includes(each));
  const isSole = (set: readonly string[]) =>
    set.join() === 'id' || unique.some((each) => isSame(each) && isSame(set));
  return finding?.by.find((set) => isSame(set) && isSole(set));
}

/** The first member of a unique set whose other members are asked for: an index begins with it. */
function missingOf({ unique, finding }: Resource, asked: readonly string[]): string | undefined {
  if (finding?.by.some((set) => set.length === asked.length && set.every((each) => asked.includes(each))))
    return undefined;
  const set = unique.find(
    ([, ...rest]) => rest.length === asked.length && rest.every((each) => asked.includes(each)),
  );
  return set?.[0];
}

interface Incomplete {
  readonly resource: Resource;
  readonly missing: string;
  readonly values: ReadonlyMap<string, unknown>;
}

/** Asks with each value that records of the realm have for the member that nobody said. */
async function byEach(
  realm: Uuid,
  { resource, missing, values }: Incomplete,
  store: EverywhereRooms['store'],
): Promise<readonly Placed[]> {
  const members = soleSet(resource, [missing, ...values.keys()]) ?? [];
  const found: Placed[] = [];
  for (const value of await store.leading(resource, realm, missing, LIMITS.searchIssuersMax)) {
    const sought = {
      members,
      values: members.map((member) => (values.get(member) as string | undefined) ?? value),
    };
    const one = await store.find(resource, realm, sought);
    if (one) found.push(one);
  }
  return found;
}
