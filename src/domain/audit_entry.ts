import type { Clock, Uuid } from './id.ts';

/** What can be done to an installation, as the log calls it; each with the sentence of the documents. */
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

/** Who asks for something, and from where. */
export interface Caller {
  /** The client, the command line, or what the installation does by itself. */
  readonly actor: string;
  /** The address of the caller; undefined where there was none. */
  readonly address: string | undefined;
  readonly requestId: string | undefined;
}

/** Something that was done to the installation. It holds no secret and no personal value. */
export interface AuditEntry extends Caller {
  /** Of one that is written again where nobody knows whether it was: by it, that is one entry. */
  readonly id?: Uuid;
  readonly action: AuditAction;
  /** What it was done to: the identifier of a client, a key, a target. */
  readonly object?: string;
  readonly realm?: Uuid;
  readonly user?: Uuid;
  readonly detail: Readonly<Record<string, unknown>>;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Someone at the machine itself. */
export const COMMAND_LINE: Caller = Object.freeze({
  actor: 'command line',
  address: undefined,
  requestId: undefined,
});

/** The clock and the randomness of an act, and who asks for it: the command line unless said. */
export interface AuditContext extends Clock {
  readonly caller?: Caller;
}

/** An act as it is logged now. */
export function createAuditEntry(
  action: AuditAction,
  fields: Pick<AuditEntry, 'id' | 'object' | 'realm' | 'user' | 'detail'>,
  { now, caller = COMMAND_LINE }: Pick<AuditContext, 'now' | 'caller'>,
): AuditEntry {
  return { action, ...fields, ...caller, at: now() };
}
