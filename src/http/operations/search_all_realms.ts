import { z } from 'zod';
import { Fault } from '../../model/fault.ts';
import { type FilterCondition, type ParsedFilter, parseFilter } from '../../model/filter/filter.ts';
import type { Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Principal } from '../../model/principal.ts';
import type { LookupRules, Resource } from '../../model/resource.ts';
import { includableBelow } from '../../model/resources.ts';
import { identifier, wholeNumber } from '../../model/rule.ts';
import type { MaybePromise, RealmSearch, RealmSearchPage } from '../../model/store.ts';
import { isLongWord } from '../../model/text/words.ts';
import { filterExample } from '../openapi/examples.ts';
import { recordPageSchema } from '../openapi/schemas.ts';
import type { Operation } from '../pipeline/operation.ts';
import { NO_LINKS } from '../pipeline/paging.ts';
import { type RecordDeps, recordReply } from '../pipeline/pipeline.ts';
import { itemPresenterOf } from '../pipeline/present.ts';
import { readDocument } from '../pipeline/reading.ts';
import { openPageIncluding } from './included.ts';
import { pageAnswer, parametersOfPage, recordOperation } from './record_operation.ts';
import { inBody } from './reverse_lookup.ts';

/** The body of a search across all realms. */
const searchRequestSchema = z
  .object({
    filter: z.string().min(1).max(LIMITS.filterBytesMax),
    realms: z
      .array(identifier('a realm').meta({ format: 'uuid' }))
      .min(1)
      .max(LIMITS.tokenRealmsMax)
      .optional()
      .meta({ description: 'Search only these of the realms that the token may read.' }),
    page: z
      .object({
        limit: wholeNumber(1, LIMITS.pageRecordsMax).optional(),
        after_realm: identifier('a realm').optional().meta({
          format: 'uuid',
          description: 'Continue after this realm: `next` of the previous response.',
        }),
        after_id: identifier('a record').optional().meta({
          format: 'uuid',
          description:
            'With `after_realm`: continue in that realm, after this record. For the rest of a realm that was `cut`.',
        }),
        total: z
          .boolean()
          .optional()
          .meta({
            description:
              `Also count the matches, up to ${LIMITS.searchCountMax.toLocaleString('en')}; of all users, any number. Not with ` +
              'a filter by an ID, a name or an e-mail address.',
          }),
      })
      .refine((page) => page.after_id === undefined || page.after_realm !== undefined, {
        path: ['after_id'],
        error: 'needs the realm of that record in after_realm',
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
export function searchAllRealms(resource: Resource, rules: LookupRules): Operation<RecordDeps> {
  return recordOperation(resource, {
    name: `search-every-${resource.name}`,
    method: 'POST',
    path: `/v2/${resource.collection}/search`,
    right: 'read',
    includes: includableBelow(resource),
    body: 'json',
    handle(deps) {
      const { store } = deps;
      const present = itemPresenterOf(resource, deps, true);
      const readIncluded = openPageIncluding(resource, deps);
      return async (call) => {
        const {
          filter: text,
          realms: requested,
          page = {},
        } = readDocument(searchRequestSchema, call.body ?? '');
        const filter = inBody(() => readFilter(text, rules));
        const limit = page.limit ?? LIMITS.pageRecordsDefault;
        const { realms } = call.principal as Principal;
        const only = realmsOf(realms, requested);
        const searchAfter = (position: SearchPosition) =>
          store.searchRealms(resource, { filter, only, ...position });
        const found = await pageOfRealms(searchAfter, page, limit);
        const items = found.items.map(({ record, key }) => present(record, key)).join(',');
        const below = await readIncluded(call, found.items);
        const included = below === undefined ? '' : `"included":[${below}],`;
        const { next, cut, total } = found;
        const results = total === undefined ? {} : { results: { total } };
        const meta = JSON.stringify({ page: { limit }, realms: { next, cut }, ...results });
        return recordReply(call, `{"data":[${items}],${included}"meta":${meta},"links":${NO_LINKS}}`);
      };
    },
    document: ({ schemas, examples }) => ({
      summary: `Find ${resource.words[1]} in every realm that the token may read.`,
      isExtension: true,
      description: `${resource.summary} The filter is one of: ${filterForms(rules)}.`,
      query: parametersOfPage(resource),
      body: {
        schema: searchRequestSchema,
        example: { filter: filterExample(resource, rules.by[0] ?? []), page: { limit: 25 } },
      },
      success: pageAnswer(recordPageSchema(resource, schemas, 'everywhere'), examples.allRealms(resource)),
    }),
  });
}

/** The realms that are searched; undefined for all. */
export function realmsOf(
  allowed: Principal['realms'],
  requested: readonly Uuid[] | undefined,
): readonly Uuid[] | undefined {
  if (allowed === '*') return requested;
  return [...allowed].filter((realm) => !requested || requested.includes(realm));
}

type SearchPosition = Pick<RealmSearch, 'after' | 'afterId' | 'limit' | 'isCounted'>;

/**
 * `next`: the realm to continue after; null if no later realm can have matches. `cut`: the last realm of the page, if it has more
 * matches than fit; otherwise null.
 */
async function pageOfRealms(
  searchAfter: (position: SearchPosition) => MaybePromise<RealmSearchPage>,
  { after_realm: after, after_id: afterId, total: isCounted }: NonNullable<AllRealmsRequest['page']>,
  limit: number,
) {
  const searched = await searchAfter({ after, afterId, limit: limit + 1, isCounted });
  const { items: found, through = null, total } = searched;
  const items = found.slice(0, limit);
  const [last, further] = [items.at(-1)?.key[0] ?? null, found[limit]?.key[0]];
  if (last === null || further === undefined) return { items, next: through, cut: null, total };
  if (further !== last) return { items, next: last, cut: null, total };
  const later = await searchAfter({ after: last, limit: 1 });
  return { items, next: later.items.length > 0 || later.through ? last : null, cut: last, total };
}

/** Reads a filter that names one of the sets, each member with one value or prefix. Throws Fault `invalid_query`. */
function readFilter(text: string, { filterables, by }: LookupRules): ParsedFilter {
  const filter = parseFilter(text, filterables);
  const members = filter.flat().map(({ member }) => member);
  const isNarrowed = filter.every((group) => group.length === 1 && group.every(isIndexed));
  if (isNarrowed && (filter.length === 0 || by.some((set) => areSame(set, members)))) return filter;
  throw new Fault('invalid_query', [
    { field: 'filter', rule: `must be one of: ${filterForms({ filterables, by })}` },
  ]);
}

/** Whether an index answers the condition: it names a value, or a prefix or a word that is long enough. */
function isIndexed(condition: FilterCondition): boolean {
  if (condition.kind === 'words') return condition.words.some(isLongWord);
  return condition.kind !== 'pattern' || (condition.part === 'prefix' && condition.text.length >= 2);
}

/** Whether two sets have the same members. */
function areSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((member) => other.includes(member));
}

/** The accepted filters of the search, as texts. */
function filterForms({ filterables, by }: LookupRules): string {
  const written = (member: string) => {
    if (filterables[member]?.compared === 'words')
      return `match(${member},…) with a word of 2 characters or more, or match(${member},*)`;
    const isPattern = filterables[member]?.operators.some((operator) => operator === 'like');
    return `eq(${member},…)${isPattern ? ` or like(${member},…*) with 2 characters or more` : ''}`;
  };
  return by.map((members) => members.map(written).join(':')).join('; ');
}
