import type { AuditContext } from './audit_entry.ts';
import { Fault } from './fault.ts';
import type { Revision } from './id.ts';

/** What a client and a webhook target have in common. Instants are milliseconds since the epoch. */
export interface Managed {
  readonly disabledAt: number | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly revision: Revision;
}

/** What to change, or a function that decides by the stored state; undefined leaves it as it is. */
export type Edit<T, Patch = Partial<T>> = Patch | ((found: T) => Patch | undefined);

interface ManagedChange<T> {
  find(): T | undefined | Promise<T | undefined>;
  edit: Edit<T>;
  /** Answers false where the stored one is no longer `found`. */
  save(changed: T, found: T): Promise<boolean>;
}

/** Changes what the edit names and nothing else; answers undefined where there is no such thing. */
export async function changeManaged<T extends Managed>(
  { find, edit, save }: ManagedChange<T>,
  { now, mintRevision }: Pick<AuditContext, 'now' | 'mintRevision'>,
): Promise<T | undefined> {
  for (;;) {
    const found = await find();
    if (!found) return undefined;
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
  /** Answers false where the stored one is no longer `found`. */
  remove(found: T): Promise<boolean>;
}

/** Answers false where there is no such thing. Rejects with Fault `precondition_failed`. */
export async function deleteManaged<T extends Managed>({
  find,
  expected: seen,
  remove,
}: ManagedDeletion<T>): Promise<boolean> {
  for (;;) {
    const found = await find();
    if (!found) return false;
    assertRevision(found, seen);
    if (await remove(found)) return true;
  }
}

/** Throws Fault `precondition_failed` where the stored revision is not the one that the caller has seen. */
export function assertRevision({ revision }: Managed, seen: Revision | undefined): void {
  if (seen !== undefined && revision !== seen) throw new Fault('precondition_failed');
}

/** Throws Fault `not_found` for undefined. */
export function assertFound<T>(found: T | undefined): T {
  if (found === undefined) throw new Fault('not_found');
  return found;
}
