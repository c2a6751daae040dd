import { SCHEMA } from 'authrealm:schema';
import { matches } from '../../../src/client/filter.ts';
import type { ReadPage } from '../../api/list_page.ts';
import { RESOURCES } from '../../api/records.ts';
import { type FoundRecord, searchRealms } from '../../api/search_realms.ts';
import { wordFilter } from '../find/word_filter.ts';

interface UserFilters {
  /** Words of names and e-mail addresses; empty for all users. */
  readonly text: string;
  /** Empty for all realms. */
  readonly realm: string;
}

const LIMIT = SCHEMA.limits.pageRecordsMax;

/**
 * Reads the users of all realms, or of one, in the order of realms. Reports the total with the first page.
 * Undefined for words that cannot be searched.
 */
export function userPages(
  { text, realm }: UserFilters,
  onTotal: (total: number | undefined) => void,
): ReadPage<FoundRecord> | undefined {
  const filter = (text === '' ? matches('text', '*') : wordFilter(text))?.text;
  if (filter === undefined) return undefined;
  const realms = realm === '' ? undefined : [realm];
  return async (cursor, signal) => {
    const [after_realm, after_id] = cursor === '' ? [] : cursor.split('/');
    const page = { limit: LIMIT, after_realm, after_id, total: cursor === '' };
    const found = await searchRealms(RESOURCES.users, { filter, realms, page, signal });
    if (cursor === '') onTotal(found.total);
    const last = found.items.at(-1);
    const next = found.cut && last ? `${found.cut}/${last.user}` : (found.next ?? undefined);
    return { items: found.items, next };
  };
}
