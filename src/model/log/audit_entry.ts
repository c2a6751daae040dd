import type { Clock, Uuid } from '../id.ts';

/** Actions in the audit log of the installation (docs/audit.md#actions). */
export type AuditAction =
  | 'client.created'
  | 'client.changed'
  | 'client.rotated'
  | 'client.disabled'
  | 'client.enabled'
  | 'client.deleted'
  | 'signing-key.created'
  | 'signing-key.withdrawn'
  | 'master-key.changed'
  | 'token.granted'
  | 'token.revoked'
  | 'console-link.created'
  | 'console-link.withdrawn'
  | 'session.begun'
  | 'session.ended'
  | 'access.refused'
  | 'proxy.unreadable'
  | 'webhook.created'
  | 'webhook.changed'
  | 'webhook.rotated'
  | 'webhook.deleted'
  | 'webhook.redelivered'
  | 'sign-in.throttled'
  | 'sign-in.throttle-lifted'
  | 'sign-in.succeeded'
  | 'sign-in.ended'
  | 'password.rehashed'
  | 'user.erased'
  | 'user.told'
  | 'log.begun'
  | 'log.exported'
  | 'log.trimmed'
  | 'records.imported'
  | 'records.exported'
  | 'database.restored';

export interface Caller {
  /** The client, the console user, the command line, or `authrealm` itself. */
  readonly actor: string;
  /** The network address of the caller; undefined if there is none. */
  readonly address: string | undefined;
  readonly requestId: string | undefined;
}

/** An entry of the installation's audit log, without secrets and personal values. */
export interface AuditEntry extends Caller {
  /** Makes a retry after an unknown outcome write one entry only. */
  readonly id?: Uuid;
  readonly action: AuditAction;
  /** The identifier of the client, key or webhook target it was done to. */
  readonly object?: string;
  readonly realm?: Uuid;
  readonly user?: Uuid;
  readonly detail: Readonly<Record<string, unknown>>;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

export const COMMAND_LINE: Caller = Object.freeze({
  actor: 'command line',
  address: undefined,
  requestId: undefined,
});

/** Clock, randomness and caller of an operation that is logged; default caller: the command line. */
export interface AuditContext extends Clock {
  readonly caller?: Caller;
}

/** Creates an audit entry with the current time. */
export function createAuditEntry(
  action: AuditAction,
  fields: Pick<AuditEntry, 'id' | 'object' | 'realm' | 'user' | 'detail'>,
  { now, caller = COMMAND_LINE }: Pick<AuditContext, 'now' | 'caller'>,
): AuditEntry {
  return { action, ...fields, ...caller, at: now() };
}
