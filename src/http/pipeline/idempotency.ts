import type { Keyring } from '../../auth/keys/keyring.ts';
import type { SecretLocation } from '../../auth/port.ts';
import type { IdempotencyRecord, IdempotencyRecordKey, KeyedRecord, Store } from '../../directory/store.ts';
import { Fault } from '../../domain/fault.ts';
import { type Clock, NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Principal } from '../../domain/principal.ts';
import type { KeyPrefix } from '../../domain/resource.ts';
import { isVisibleAscii, VISIBLE_ASCII_RULE } from '../../domain/text/visible_ascii.ts';
import { type Reply, replyOf } from '../server/reply.ts';
import type { Call } from './call.ts';

export interface IdempotencyDeps {
  readonly store: Pick<Store, 'loadIdempotencyRecord' | 'commit'>;
  readonly keyring: Pick<Keyring, 'digest' | 'seal' | 'open'>;
  readonly clock: Pick<Clock, 'now'>;
}

/**
 * Answers a request. Given `storable`, it commits what that makes of its answer together with the record; it answers
 * undefined where the same request was answered concurrently.
 */
export type WriteAction = (storable: Storable | undefined) => Promise<Reply | undefined>;

/** Makes the idempotency record of a reply. An error reply has no created record. */
export type Storable = (reply: Reply, created: KeyedRecord | undefined) => IdempotencyRecord;

/** The path of a request below its scope. */
export interface RepeatablePath {
  readonly collection: string;
  /** The index of the user in the key of a created record; -1 if the answer is about no single user. */
  readonly userIndex: number;
}

/** Runs a request once, however often it is sent with one Idempotency-Key. */
export type WithIdempotency = (call: Call, path: RepeatablePath, writeAction: WriteAction) => Promise<Reply>;

/**
 * A request with a key: where its answer is stored, a digest of its body, and the user that its record
 * belongs to.
 */
interface KeyedRequest {
  readonly place: IdempotencyRecordKey;
  readonly body: string;
  readonly userOf: (created: KeyedRecord | undefined) => Uuid | undefined;
}

/** A refusal that would be the same next time is stored like any answer; these are not. */
function isPassing(status: number): boolean {
  return status === 401 || status === 403 || status === 409 || status === 429 || status >= 500;
}

/**
 * Opens the store of answers (`Idempotency-Key`). A key belongs to its client, method and path. Neither it nor the body is
 * ever stored: only digests of them under the keyring; the answer is stored encrypted. A replay has passed the same stages
 * as a first request: token, scope and realm.
 */
export function openIdempotency({ store, keyring, clock }: IdempotencyDeps): WithIdempotency {
  const inFlight = new Set<string>();

  async function replay(place: IdempotencyRecordKey, body: string): Promise<Reply | undefined> {
    const stored = await store.loadIdempotencyRecord(place, clock.now());
    if (!stored) return undefined;
    if (stored.body !== body) throw new Fault('idempotency_key_reused');
    return JSON.parse(keyring.open('remembered-answer', sealPlace(stored), stored.sealed));
  }

  async function run({ place, body, userOf }: KeyedRequest, writeAction: WriteAction): Promise<Reply> {
    const stored = await replay(place, body);
    if (stored) return stored;
    const storable: Storable = (reply, created) => {
      const at = clock.now();
      const sealed = keyring.seal('remembered-answer', sealPlace(place), JSON.stringify(reply));
      const expiresAt = at + LIMITS.idempotencyMsMax;
      const about = { recordId: created?.record.id, user: userOf(created) };
      return { ...place, ...about, body, status: reply.status, sealed, at, expiresAt };
    };
    try {
      return (await writeAction(storable)) ?? (await replay(place, body)) ?? stillInFlight();
    } catch (error) {
      if (!(error instanceof Fault) || error.code === 'idempotency_key_reused') throw error;
      const refusal = replyOf(error);
      if (error.isPassing || isPassing(refusal.status)) throw error;
      // A refusal has no record: it is committed by itself, unless the same request was answered concurrently.
      const { kind } = await store.commit([], storable(refusal, undefined));
      return (kind === 'already_answered' && (await replay(place, body))) || refusal;
    }
  }

  return async (call, { collection, userIndex }, writeAction) => {
    const key = call.request.headers.get('idempotency-key');
    if (key === null) return (await writeAction(undefined)) as Reply;
    if (!isVisibleAscii(key)) {
      throw new Fault('invalid_query', [{ field: 'Idempotency-Key', rule: `must be ${VISIBLE_ASCII_RULE}` }]);
    }
    const scope = call.scope as KeyPrefix;
    const { clientId } = call.principal as Principal;
    const request = JSON.stringify([clientId, 'POST', collection, scope, key]);
    const place = { realm: scope[0] ?? NIL_UUID, clientId, key: keyring.digest('idempotency-key', request) };
    if (inFlight.has(place.key)) throw new Fault('idempotency_key_in_use');
    inFlight.add(place.key);
    try {
      const body = keyring.digest('request-body', call.body ?? '');
      const userOf = (created: KeyedRecord | undefined) => (created?.key ?? scope)[userIndex];
      return await run({ place, body, userOf }, writeAction);
    } finally {
      inFlight.delete(place.key);
    }
  };
}

/** The concurrent request has finished, and its stored reply has already expired. */
function stillInFlight(): never {
  throw new Fault('idempotency_key_in_use');
}

function sealPlace({ realm, key }: IdempotencyRecordKey): SecretLocation {
  return { table: 'idempotency', column: 'answer_sealed', realm, id: key };
}
