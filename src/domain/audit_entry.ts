import type { Clock, Uuid } from './id.ts';

/** Actions in the audit log of the installation, each with its description in the documents. */
export const AUDIT_ACTIONS = {
  'client.created': 'a client was created',
  'client.changed': 'the name, scopes or realms of a client were changed',
  'client.rotated': 'the secret of a client was rotated',
  'client.disabled': 'a client was disabled',
  'client.enabled': 'a disabled client was enabled',
  'client.deleted': 'a client was deleted',
  'signing-key.created': 'a signing key was created',
  'signing-key.withdrawn': 'a signing key was withdrawn',
  'master-key.changed': 'the master key was changed',
  'token.granted': 'an access token was issued',
  'token.revoked': 'an access token was revoked',
  'console-link.created': 'a sign-in link to the console was created',
  'session.begun': 'a console session was started',
  'session.ended': 'a console session was ended by signing out or by a command',
  'access.refused': 'requests were denied access; with the reason',
  'proxy.unreadable': 'a trusted proxy sent no readable client address',
  'webhook.created': 'a webhook target was created',
  'webhook.changed': 'a webhook target was changed',
  'webhook.rotated': 'the secret of a webhook target was rotated',
  'webhook.deleted': 'a webhook target was deleted',
  'webhook.redelivered': 'dead letters and failed messages of a webhook target were sent again',
  'sign-in.throttled': 'passwords were not checked because a budget was exhausted',
  'sign-in.throttle-lifted':
    'an administrator had passwords of a user checked again after too many wrong ones',
  'sign-in.succeeded': 'a user signed in by password; only with --log-sign-ins',
  'password.rehashed':
    'a password was rehashed after a sign-in, because its hash was imported or weaker than the settings',
  'user.erased': 'a user was erased',
  'user.told': 'all data about a user was exported',
  'log.begun': 'the log of a realm began',
  'log.exported': 'the log was exported',
  'log.trimmed': 'expired entries were removed from a log',
  'records.imported': 'an import ended, completely or not',
  'database.restored': 'the database was restored from a backup',
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
