import { LIMITS } from '../../model/limits.ts';
import { type AnyRecord, ancestry, type Key, type Resource } from '../../model/resource.ts';
import { includableBelow } from '../../model/resources.ts';
import type { RecordWithIncluded } from '../../model/store.ts';
import type { Reply } from '../server/reply.ts';
import type { Call } from './call.ts';
import { collectionLinks } from './links.ts';
import { linkAfter } from './paging.ts';
import { recordReply } from './pipeline.ts';
import { etags, includingPresenterOf, itemPresenterOf, type LinkContext, presenterOf } from './present.ts';
import { NEWEST_FIRST } from './query.ts';

/** A record, with records below it if its request named them. */
export interface ShownRecord {
  readonly record: AnyRecord;
  readonly included?: RecordWithIncluded['included'] | undefined;
}

/** Serializes a record, with the records below it that it comes with. */
export function openIncludedPresenter(
  resource: Resource,
  context: LinkContext,
): (key: Key, shown: ShownRecord) => string {
  const presentAlone = presenterOf(resource, context);
  const presentIncluding = includingPresenterOf(resource, context);
  const children = new Map(
    includableBelow(resource).map((child) => [
      child,
      {
        presentItem: itemPresenterOf(child, context, false),
        urlOf: collectionLinks(ancestry(child), context.baseUrl),
      },
    ]),
  );
  return (key, { record, included }) => {
    if (!included) return presentAlone(record, key);
    const items: string[] = [];
    const more: string[] = [];
    for (const { resource: child, records, hasMore } of included) {
      const known = children.get(child);
      if (!known) throw new Error(`${child.name} cannot be included`);
      for (const each of records) items.push(known.presentItem(each, [...key, each.id]));
      const last = records.at(-1);
      const position = last && { at: last.created_at, id: last.id };
      const rest = () => linkAfter(known.urlOf(key), LIMITS.includedRecordsMax, position, NEWEST_FIRST);
      if (hasMore) more.push(`"${child.includedAs}":"${rest()}"`);
    }
    return presentIncluding(record, key, items, more);
  };
}

/** Makes replies with one record: the body that GET returns, with the records below it, if the reply includes some. */
export function recordReplies(resource: Resource, context: LinkContext) {
  const present = openIncludedPresenter(resource, context);
  const etagOf = etags(context.baseUrl);
  /** `location`: of a new record. */
  return (call: Call, key: Key, shown: ShownRecord, location?: string): Reply => {
    const ETag = etagOf(shown.record);
    const body = present(key, shown);
    if (location === undefined) return recordReply(call, body, { ETag });
    return recordReply(call, body, { ETag, Location: location }, 201);
  };
}
