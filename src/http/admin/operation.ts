import type { z } from 'zod';
import type { Keyring } from '../../access/keyring.ts';
import type { AccessStore } from '../../access/port.ts';
import type { Person } from '../../audit/keys.ts';
import type { Erasure, LogStore, Scrubbed } from '../../audit/port.ts';
import type { LogReading } from '../../audit/reading.ts';
import type { Held } from '../../audit/subject_access.ts';
import type { MaybePromise, Store } from '../../directory/store.ts';
import type { Occasion } from '../../domain/act.ts';
import type { FaultCode } from '../../domain/fault.ts';
import type { Ambient, Revision } from '../../domain/id.ts';
import type { Snapshot } from '../../observe/family.ts';
import type { WebhookRooms } from '../../webhooks/targets.ts';
import type { Method } from '../router.ts';

/** What administrative operations work on. */
export interface AdminRooms {
  readonly store: Pick<Store, 'get'>;
  readonly accessStore: AccessStore;
  readonly keyring: Keyring;
  readonly logStore: Pick<LogStore, 'heads' | 'head' | 'erasure'>;
  readonly logReading: LogReading;
  readonly webhooks: WebhookRooms;
  /** What all processes of the service measure together. Rejects with Fault `unavailable` where nobody tells it in time. */
  metrics(): Promise<Snapshot>;
  /** Erases a user; undefined where nothing tells that there was one. The files follow, as far as that can be done here. */
  erase(
    person: Person,
    occasion: Occasion,
  ): Promise<
    | {
        readonly erasure: Erasure;
        /** Why it does not stand outside of the database yet; undefined where it does. */
        readonly untold: Promise<unknown>;
        readonly scrubbed: Promise<Scrubbed | undefined>;
      }
    | undefined
  >;
  /** Everything held about a user. */
  tellHeld(person: Person, occasion: Occasion): AsyncIterable<Held>;
  readonly ambient: Ambient;
  readonly baseUrl: string;
  /** How many entries a page holds unless the caller says. */
  readonly pageLength: number;
}

/** Everything below this path is administration. */
export const ADMIN_PATH = '/admin/v1';

/** A named segment of a path, for the document. */
export interface PathParameter {
  readonly description: string;
  readonly example: string;
  /** The operation that reads what it names, where that is none of administration. */
  readonly readBy?: string;
}

/** What was asked, every value checked. */
export interface Asked<Query, Data> {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly data: Data;
  /** The client that asks. */
  readonly clientId: string;
  readonly occasion: Occasion;
  /**
   * The one revision that a write may land on, given what the record has now; undefined where `If-Match` sets no
   * condition.
   */
  seen(current: () => Promise<Revision | undefined>): Promise<Revision | undefined>;
  /** The absolute address of a path below administration. */
  url(path: string): string;
}

/** What is answered. */
export interface Answered {
  readonly body: object;
  /** Becomes the ETag. */
  readonly revision?: Revision;
  /** The absolute address of what was made. */
  readonly location?: string;
}

/**
 * An administrative operation, described once: its route, what is checked of a request, and its place in the OpenAPI
 * document come from here.
 */
export interface Operation<Query extends z.ZodObject = z.ZodObject, Data extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly method: Method;
  /** Below ADMIN_PATH, for example `/clients/:client_id`. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly params?: Readonly<Record<string, PathParameter>>;
  readonly query?: Query;
  /** What `data` of the body is. */
  readonly data?: { readonly schema: Data; readonly example: object };
  /** It reads `If-Match`. */
  readonly isConditional?: true;
  /** Without a schema there is no body: 204. */
  readonly success: {
    readonly status: 200 | 201 | 202 | 204;
    readonly description: string;
    readonly schema?: z.ZodType;
    readonly example?: object;
    /** Its answer carries an ETag. */
    readonly hasEtag?: true;
    /** The path of what was made, in the example. */
    readonly location?: string;
  };
  /** Faults beside those that follow from the rest. */
  readonly faults?: readonly FaultCode[];
  act(asked: Asked<z.output<Query>, z.output<Data>>, rooms: AdminRooms): MaybePromise<Answered | undefined>;
}

/** An operation of its own types, among others. */
export function operation<Query extends z.ZodObject, Data extends z.ZodObject>(
  described: Operation<Query, Data>,
): Operation {
  return Object.freeze(described) as unknown as Operation;
}
