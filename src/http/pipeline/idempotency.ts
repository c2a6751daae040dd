import type { Keyring } from '../../access/keys/keyring.ts';
import { FAULTS, Fault, type FaultCode } from '../../model/fault.ts';
import { type Clock, NIL_UUID, type Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Principal } from '../../model/principal.ts';
import type { KeyPrefix } from '../../model/resource.ts';
import type { IdempotencyRecord, IdempotencyRecordKey, Store } from '../../model/store.ts';
import { isVisibleAscii, VISIBLE_ASCII_RULE } from '../../model/text/visible_ascii.ts';
import { faultReply, type Reply } from '../server/reply.ts';
import type { Call } from './call.ts';

interface IdempotencyDeps {
  readonly store: Pick<Store, 'loadIdempotencyRecord' | 'commit'>;
  readonly keyring: Pick<Keyring, 'digest'>;
  readonly clock: Pick<Clock, 'now'>;
}

/** A request that creates records. */
interface RepeatableRequest {
  /** The path below its scope. */
  readonly collection: string;
  /**
   * Executes it. Given `idempotencyRecordOf`, it commits the idempotency record together with what it creates. Undefined where the
   * same request was answered concurrently.
   */
  execute(idempotencyRecordOf: MakeIdempotencyRecord | undefined): Promise<Reply | undefined>;
  /** The reply to a repetition, with the created records as they are now. Throws Fault `not_found`. */
  repeat(created: readonly Uuid[]): Promise<Reply>;
}

/** Makes the idempotency record of a request that creates records with these IDs. */
type MakeIdempotencyRecord = (created: readonly Uuid[]) => IdempotencyRecord;

/** Executes a request once, however often it is sent with one Idempotency-Key. */
export type WithIdempotency = (call: Call, request: RepeatableRequest) => Promise<Reply>;

/** A refusal that would be the same next time is stored like any outcome; these are not. */
function isPassing({ code, isPassing: mayPass }: Fault): boolean {
  const { status } = FAULTS[code];
  return mayPass || status === 401 || status === 403 || status === 409 || status === 429 || status >= 500;
}

/**
 * Stores the outcomes of requests (`Idempotency-Key`): what they created, or the code of their refusal. A key belongs to its client,
 * method and path. Neither it nor the body is ever stored: only digests of them under the keyring. A repetition has passed the same
 * stages as a first request: token, scope and realm.
 */
export function openIdempotency({ store, keyring, clock }: IdempotencyDeps): WithIdempotency {
  const inFlight = new Set<string>();

  async function run(place: IdempotencyRecordKey, body: string, request: RepeatableRequest): Promise<Reply> {
    const replay = async (): Promise<Reply | undefined> => {
      const stored = await store.loadIdempotencyRecord(place, clock.now());
      if (!stored) return undefined;
      if (stored.body !== body) throw new Fault('idempotency_key_reused');
      return stored.fault === undefined ? await request.repeat(stored.created) : faultReply(stored.fault);
    };
    const idempotencyRecordOf = (created: readonly Uuid[], fault?: FaultCode): IdempotencyRecord => {
      const at = clock.now();
      return { ...place, body, created, fault, at, expiresAt: at + LIMITS.idempotencyMsMax };
    };
    const execute = async (): Promise<Reply | undefined> => {
      try {
        return await request.execute(idempotencyRecordOf);
      } catch (error) {
        if (!(error instanceof Fault) || isPassing(error)) throw error;
        // A refusal has no record: it is committed by itself, unless the same request was answered concurrently.
        const { kind } = await store.commit([], idempotencyRecordOf([], error.code));
        if (kind !== 'already_answered') throw error;
        return undefined;
      }
    };
    const reply = (await replay()) ?? (await execute()) ?? (await replay());
    // The concurrent request has finished, and its record has already expired.
    if (!reply) throw new Fault('idempotency_key_in_use');
    return reply;
  }

  return async (call, request) => {
    const key = call.request.headers.get('idempotency-key');
    if (key === null) return (await request.execute(undefined)) as Reply;
    if (!isVisibleAscii(key)) {
      throw new Fault('invalid_query', [{ field: 'Idempotency-Key', rule: `must be ${VISIBLE_ASCII_RULE}` }]);
    }
    const scope = call.scope as KeyPrefix;
    const { clientId } = call.principal as Principal;
    const text = JSON.stringify([clientId, 'POST', request.collection, scope, key]);
    const place = { realm: scope[0] ?? NIL_UUID, clientId, key: keyring.digest('idempotency-key', text) };
    if (inFlight.has(place.key)) throw new Fault('idempotency_key_in_use');
    inFlight.add(place.key);
    try {
      return await run(place, keyring.digest('request-body', call.body ?? ''), request);
    } finally {
      inFlight.delete(place.key);
    }
  };
}
