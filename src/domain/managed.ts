import type { AuditContext } from './audit_entry.ts';
import { Fault } from './fault.ts';
import type { Revision } from './id.ts';

/** The fields that clients and webhook targets share. Timestamps are milliseconds since the epoch. */
export interface Managed {
  readonly disabledAt: number | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly revision: Revision;
  /** Its row was not written by the service. */
  readonly isForged?: boolean;
}

/** A patch, or a function that returns one for the stored state; undefined changes nothing. */
export type Edit<T, Patch = Partial<T>> = Patch | ((found: T) => Patch | undefined);

interface ManagedChange<T> {
  readonly id: string;
  find(): T | undefined | Promise<T | undefined>;
  edit: Edit<T>;
  /** Returns false if the stored one is no longer `found`. */
  save(changed: T, found: T): Promise<boolean>;
}

const FORGED = 'it was changed in the database without the service, and can only be deleted';

/** Throws Fault `conflict` for a forged row. */
export function assertGenuine({ isForged }: Pick<Managed, 'isForged'>): void {
  if (isForged) throw new Fault('conflict', [{ field: 'data', rule: FORGED }]);
}

/**
 * Applies a patch; returns undefined if `find` finds nothing. Throws Fault `conflict` for a forged row: its write would sign it. The
 * changes of one object run one after the other: of concurrent ones, each commit would make all others begin again.
 */
export function changeManaged<T extends Managed>(
  change: ManagedChange<T>,
  context: Pick<AuditContext, 'now' | 'mintRevision'>,
): Promise<T | undefined> {
  const { id } = change;
  const work = (lastChanges.get(id) ?? Promise.resolve()).then(() => changeNow(change, context));
  const ended = work.then(ignore, ignore).then(() => {
    if (lastChanges.get(id) === ended) lastChanges.delete(id);
  });
  lastChanges.set(id, ended);
  return work;
}

/** The last change of each object in this process, while it runs. */
const lastChanges = new Map<string, Promise<void>>();

const ignore = (): void => undefined;

async function changeNow<T extends Managed>(
  { find, edit, save }: ManagedChange<T>,
  { now, mintRevision }: Pick<AuditContext, 'now' | 'mintRevision'>,
): Promise<T | undefined> {
  for (;;) {
    const found = await find();
    if (!found) return undefined;
    assertGenuine(found);
    const patch = typeof edit === 'function' ? edit(found) : edit;
    if (!patch) return found;
    const updatedAt = Math.max(found.updatedAt, now());
    const changed: T = { ...found, ...patch, updatedAt, revision: mintRevision() };
    if (await save(changed, found)) return changed;
  }
}

interface ManagedDeletion<T> {
  find(): T | undefined | Promise<T | undefined>;
  /** The only revision to delete; undefined deletes any. */
  readonly expected: Revision | undefined;
  /** Returns false if the stored one is no longer `found`. */
  remove(found: T): Promise<boolean>;
}

/** Returns false if `find` finds nothing. Rejects with Fault `precondition_failed`. */
export async function deleteManaged<T extends Managed>({
  find,
  expected,
  remove,
}: ManagedDeletion<T>): Promise<boolean> {
  for (;;) {
    const found = await find();
    if (!found) return false;
    assertRevision(found, expected);
    if (await remove(found)) return true;
  }
}

/** Throws Fault `precondition_failed` if the stored revision is not the expected one. */
export function assertRevision({ revision }: Managed, expected: Revision | undefined): void {
  if (expected !== undefined && revision !== expected) throw new Fault('precondition_failed');
}

/** Throws Fault `not_found` for undefined. */
export function assertFound<T>(found: T | undefined): T {
  if (found === undefined) throw new Fault('not_found');
  return found;
}
