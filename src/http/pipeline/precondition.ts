import type { Revision } from '../../domain/id.ts';

/** Reads the revision out of a strong ETag of ours; undefined for any other. */
export type RevisionOf = (etag: string) => Revision | undefined;

const OURS = /^"([0-9a-f]{16})-/;

export function revisionReader(etagOf: (record: { readonly revision: Revision }) => string): RevisionOf {
  return (etag) => {
    const revision = OURS.exec(etag)?.[1] as Revision | undefined;
    return revision !== undefined && etagOf({ revision }) === etag ? revision : undefined;
  };
}

/**
 * The revisions that an If-Match header names (RFC 9110, 13.1.1: strong comparison, so a weak one matches nothing).
 * Undefined where there is no condition: without the header, and for `*`, which a write asks for anyway.
 */
export function ifMatchRevisions(
  header: string | null,
  revisionOf: RevisionOf,
): readonly Revision[] | undefined {
  if (header === null || header.trim() === '*') return undefined;
  return header.split(',').flatMap((part) => revisionOf(part.trim()) ?? []);
}

/** The revision of no record. A write that may land on none asks for it, and learns whether the record is there. */
const NO_REVISION = '' as Revision;

/**
 * The one revision a write may land on; undefined where there is no condition. Of several, the one that the record has
 * now: if it moves before the write lands, the write does not.
 */
export async function requiredRevision(
  revisions: readonly Revision[] | undefined,
  current: () => Promise<Revision | undefined>,
): Promise<Revision | undefined> {
  if (revisions === undefined || revisions.length === 1) return revisions?.[0];
  const now = revisions.length === 0 ? undefined : await current();
  return revisions.find((revision) => revision === now) ?? NO_REVISION;
}
