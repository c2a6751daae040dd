import type { Keyring, Place } from '../access/keyring.ts';
import type { Remember } from '../directory/directory.ts';
import type { Memory, MemoryPlace, Store } from '../directory/store.ts';
import { Fault } from '../domain/fault.ts';
import { type Ambient, NIL_UUID, type Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Principal } from '../domain/principal.ts';
import type { Resource, Scope } from '../domain/resource.ts';
import { isVisibleWord, VISIBLE_WORD } from '../domain/visible_word.ts';
import type { Call } from './call.ts';
import { type Reply, replyOf } from './reply.ts';

/** What remembering answers needs. */
export interface Memories {
  readonly store: Pick<Store, 'recall' | 'commit'>;
  readonly keyring: Pick<Keyring, 'digest' | 'seal' | 'open'>;
  readonly ambient: Pick<Ambient, 'now'>;
}

/**
 * Answers a request. Given `keep`, its answer lands in the commit of the record; it answers undefined where the same
 * request was answered by somebody else meanwhile.
 */
export type Act = (keep: Keep | undefined) => Promise<Reply | undefined>;

/** Makes what is remembered of a reply, once it is known which record it tells about. */
export type Keep = (reply: Reply, about: About) => Memory;

/** What a reply tells about; a refusal tells about no record. */
interface About {
  readonly id: Uuid | undefined;
  readonly user: Uuid | undefined;
}

/** A request with a key: where its answer is kept, a digest of its body, and the user it is about. */
interface Asked {
  readonly place: MemoryPlace;
  readonly body: string;
  readonly user: Uuid | undefined;
}

/** What a request would make, and the user it would belong to. */
export interface Making {
  readonly resource: Resource;
  readonly user: Uuid | undefined;
}

/** Runs a request once, however often it is sent with one Idempotency-Key. */
export type Once = (call: Call, making: Making, act: Act) => Promise<Reply>;

/** A refusal that would be the same next time is kept like any answer; these are not. */
function isPassing(status: number): boolean {
  return status === 401 || status === 403 || status === 409 || status === 429 || status >= 500;
}

/**
 * Opens the memory of answers (`Idempotency-Key`). A key belongs to its client, method and path. It is never kept, nor is
 * the body: only digests of them under the keyring; the answer is kept encrypted. What is replayed has passed the same
 * stages as a first request: token, scope and realm.
 */
export function openOnce({ store, keyring, ambient }: Memories): Once {
  const inFlight = new Set<string>();

  async function replay(place: MemoryPlace, body: string): Promise<Reply | undefined> {
    const memory = await store.recall(place, ambient.now());
    if (!memory) return undefined;
    if (memory.body !== body) throw new Fault('key_reused');
    return opened(memory);
  }

  function opened(memory: Memory): Reply {
    return JSON.parse(keyring.open('remembered-answer', sealPlace(memory), memory.sealed));
  }

  function keeping(place: MemoryPlace, body: string): Keep {
    return (reply, { id, user }) => {
      const at = ambient.now();
      const sealed = keyring.seal('remembered-answer', sealPlace(place), JSON.stringify(reply));
      const expiresAt = at + LIMITS.idempotencyMsMax;
      return { ...place, body, status: reply.status, recordId: id, user, sealed, at, expiresAt };
    };
  }

  /** A refusal has no record: it lands by itself, unless somebody else was first. */
  async function refuse(fault: Fault, { place, body, user }: Asked, keep: Keep): Promise<Reply> {
    const reply = replyOf(fault);
    if (fault.isPassing || isPassing(reply.status)) throw fault;
    const memory = keep(reply, { id: undefined, user });
    const { kind } = await store.commit([], [], memory);
    return (kind === 'remembered' ? await replay(place, body) : undefined) ?? reply;
  }

  async function run({ place, body, user }: Asked, act: Act): Promise<Reply> {
    const known = await replay(place, body);
    if (known) return known;
    const keep = keeping(place, body);
    try {
      const reply = (await act(keep)) ?? (await replay(place, body));
      if (!reply) throw new Fault('key_in_flight');
      return reply;
    } catch (error) {
      if (error instanceof Fault && error.code !== 'key_reused')
        return refuse(error, { place, body, user }, keep);
      throw error;
    }
  }

  return async (call, making, act) => {
    const key = call.request.headers.get('idempotency-key');
    if (key === null) return (await act(undefined)) as Reply;
    if (!isVisibleWord(key)) {
      throw new Fault('query_invalid', [{ field: 'Idempotency-Key', rule: `must be ${VISIBLE_WORD}` }]);
    }
    const scope = call.scope as Scope;
    const { clientId } = call.principal as Principal;
    const request = JSON.stringify([clientId, 'POST', making.resource.collection, scope, key]);
    const place = { realm: scope[0] ?? NIL_UUID, clientId, key: keyring.digest('idempotency-key', request) };
    if (inFlight.has(place.key)) throw new Fault('key_in_flight');
    inFlight.add(place.key);
    try {
      const body = keyring.digest('request-body', call.body ?? '');
      return await run({ place, body, user: making.user }, act);
    } finally {
      inFlight.delete(place.key);
    }
  };
}

function sealPlace({ realm, key }: MemoryPlace): Place {
  return { table: 'idempotency', column: 'answer_sealed', realm, id: key };
}

/** Adapts what is remembered to the commit of a record: its answer is known as soon as the record is. */
export function rememberBy(
  keep: Keep | undefined,
  made: (placed: Parameters<Remember>[0]) => { readonly reply: Reply; readonly user: Uuid | undefined },
): Remember | undefined {
  if (!keep) return undefined;
  return (placed) => {
    const { reply, user } = made(placed);
    return keep(reply, { id: placed.record.id, user });
  };
}
