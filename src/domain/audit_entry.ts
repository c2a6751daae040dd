import type { Clock, Uuid } from './id.ts';

/** Actions in the audit log of the installation, each with its description in the documents. */
export const AUDIT_ACTIONS = {
  'client.created': 'a client was made',
  'client.changed': 'name, scopes or realms of a client were changed',
  'client.rotated': 'a client was given a new secret',
  'client.disabled': 'a client was disabled',
  'client.enabled': 'a disabled client was accepted again',
  'client.deleted': 'a client was deleted',
  'signing-key.created': 'a signing key was made',
  'signing-key.withdrawn': 'a signing key was withdrawn',
  'master-key.changed': 'the master key was changed',
  'token.granted': 'an access token was given out',
  'token.revoked': 'an access token was taken back',
  'console-link.created': 'a link to the console was made',
  'session.begun': 'somebody signed in to the console',
  'session.ended': 'somebody signed out of the console',
  'access.refused': 'requests were refused: how many, and why',
  'webhook.created': 'a webhook target was made',
  'webhook.changed': 'a webhook target was changed',
  'webhook.rotated': 'a webhook target was given a new secret',
  'webhook.deleted': 'a webhook target was deleted',
  'webhook.redelivered': 'what a webhook target was not told was sent again',
  'user.erased': 'a user was erased',
  'user.told': 'everything held about a user was exported',
  'log.begun': 'the log of a realm began: what stands before was written by an older release',
  'log.adopted': 'entries that an older release wrote got their tags',
  'log.exported': 'the log was exported',
  'log.trimmed': 'entries that were too old were removed from a log',
  'records.imported': 'an import ended',
  'database.restored': 'a backup was put in the place of the database',
} as const;

export type AuditAction = keyof typeof AUDIT_ACTIONS;

/** The caller of an operation. */
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

/** The caller of commands. */
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
