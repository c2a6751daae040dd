import type { Revision } from '../../model/id.ts';

/** The revision in a strong ETag of this service; undefined for any other. */
type RevisionOf = (etag: string) => Revision | undefined;

const OURS = /^"([0-9a-f]{16})-/;

export function revisionReader(etagOf: (record: { readonly revision: Revision }) => string): RevisionOf {
  return (etag) => {
    const revision = OURS.exec(etag)?.[1] as Revision | undefined;
    return revision !== undefined && etagOf({ revision }) === etag ? revision : undefined;
  };
}

/**
 * The revisions that an If-Match header names (RFC 9110, 13.1.1: strong comparison, so a weak ETag matches nothing).
 * Undefined without a condition: without the header, and for `*`, because a write needs an existing record anyway.
 */
export function ifMatchRevisions(
  header: string | null,
  revisionOf: RevisionOf,
): readonly Revision[] | undefined {
  if (header === null || header.trim() === '*') return undefined;
  return header.split(',').flatMap((part) => revisionOf(part.trim()) ?? []);
}

/** A revision that no record has, for a write whose condition cannot hold: 404 or 412. */
const NO_REVISION = '' as Revision;

/**
 * The revision that a write requires; undefined without a condition. Of several, the one that the record has now: if it
 * changes before the commit, the write fails.
 */
export async function requiredRevision(
  revisions: readonly Revision[] | undefined,
  current: () => Promise<Revision | undefined>,
): Promise<Revision | undefined> {
  if (revisions === undefined || revisions.length === 1) return revisions?.[0];
  const now = revisions.length === 0 ? undefined : await current();
  return revisions.find((revision) => revision === now) ?? NO_REVISION;
}
