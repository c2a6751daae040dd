import { conflict, Fault } from './fault.ts';
import type { Revision } from './id.ts';
import type { AuditContext, AuditEntry } from './log/audit_entry.ts';

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

/** The state after a change, and the audit entry that is committed with it. */
export interface LoggedChange<T> {
  readonly after: T;
  readonly auditEntry: AuditEntry;
}

const FORGED = 'it was changed in the database without the service, and can only be deleted';

/** Throws Fault `conflict` for a forged row. */
export function assertGenuine({ isForged }: Pick<Managed, 'isForged'>): void {
  if (isForged) throw conflict('data', FORGED);
}

/**
 * The state after an edit, which runs in the transaction that has read `found`; undefined if it changes nothing. Throws Fault
 * `conflict` for a forged row: its write would sign it.
 */
export function applyEdit<T extends Managed>(
  found: T,
  edit: Edit<T>,
  { now, mintRevision }: Pick<AuditContext, 'now' | 'mintRevision'>,
): T | undefined {
  assertGenuine(found);
  const patch = typeof edit === 'function' ? edit(found) : edit;
  const updatedAt = Math.max(found.updatedAt, now());
  return patch && { ...found, ...patch, updatedAt, revision: mintRevision() };
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
