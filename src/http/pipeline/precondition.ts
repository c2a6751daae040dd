import type { Revision } from '../../model/id.ts';

const OURS = /^"([0-9a-f]{16})-/;

/** A revision that no record has, for a write whose condition cannot hold: 404 or 412. */
const NO_REVISION = '' as Revision;

/**
 * Reads If-Match into the revision that a write requires (RFC 9110, 13.1.1: strong comparison, so a weak ETag matches nothing).
 * Undefined without a condition: without the header, and for `*`, because a write needs an existing record anyway. A write can
 * require one revision, so several ETags of this service match nothing; neither does a write with If-None-Match, whose condition is
 * that the record does not exist, or is another one (13.1.2).
 */
export function preconditionReader(etagOf: (record: { readonly revision: Revision }) => string) {
  const revisionOf = (etag: string): Revision | undefined => {
    const revision = OURS.exec(etag)?.[1] as Revision | undefined;
    return revision !== undefined && etagOf({ revision }) === etag ? revision : undefined;
  };
  return (ifMatch: string | null, ifNoneMatch: string | null = null): Revision | undefined => {
    if (ifNoneMatch !== null) return NO_REVISION;
    if (ifMatch === null || ifMatch.trim() === '*') return undefined;
    const [revision, ...others] = ifMatch.split(',').flatMap((part) => revisionOf(part.trim()) ?? []);
    return revision === undefined || others.length > 0 ? NO_REVISION : revision;
  };
}
