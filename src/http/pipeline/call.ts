import type { MaybePromise } from '../../directory/store.ts';
import type { IpAddress } from '../../domain/ip_address.ts';
import type { Principal } from '../../domain/principal.ts';
import type { RefusedAccess } from '../../domain/refused_access.ts';
import type { AnyRecord, Key, Scope } from '../../domain/resource.ts';
import type { Reply } from '../server/reply.ts';

/** One request on its way. Each stage fills a field, and reads only what an earlier one has filled. */
export interface Call {
  readonly request: Request;
  /** The decoded segments of the path that the route names. */
  readonly params: Readonly<Record<string, string>>;
  readonly requestId: string;
  /**
   * The caller's address; undefined where the connection has none, or was gone when this was first asked. Nobody asks
   * the socket before.
   */
  address(): IpAddress | undefined;
  /** The header of that name. */
  authorization(): string | null;
  principal: Principal | undefined;
  key: Key | undefined;
  /** The records above a collection. */
  scope: Scope | undefined;
  /** The text of the body. */
  body: string | undefined;
  record: AnyRecord | undefined;
  etag: string | undefined;
  /** Why its caller was let in nowhere. */
  refused: RefusedAccess | undefined;
  /** What is told about rates that the call was counted by; undefined where it was by none. */
  rateHeaders: RateHeaders | undefined;
}

/** The header fields of draft-ietf-httpapi-ratelimit-headers. */
export type RateHeaders = Readonly<Record<'RateLimit' | 'RateLimit-Policy', string>>;

/** A call at its beginning. It has all of its fields from the start, so that filling them moves nothing. */
export function openCall(
  request: Request,
  params: Call['params'],
  requestId: string,
  addressOf: (request: Request) => IpAddress | undefined,
): Call {
  let isAsked = false;
  let address: IpAddress | undefined;
  let authorization: string | null | undefined;
  return {
    request,
    params,
    requestId,
    address() {
      if (!isAsked) address = addressOf(request);
      isAsked = true;
      return address;
    },
    authorization() {
      if (authorization === undefined) authorization = request.headers.get('authorization');
      return authorization;
    },
    principal: undefined,
    key: undefined,
    scope: undefined,
    body: undefined,
    record: undefined,
    etag: undefined,
    refused: undefined,
    rateHeaders: undefined,
  };
}

/** A step of the request path: it answers, and ends the walk, or adds to the call. */
export type Stage = (call: Call) => MaybePromise<Reply | undefined>;

/** Answers a call. */
export type CallHandler = (call: Call) => MaybePromise<Reply>;

/** Walks the stages in order. It waits only where a stage does, so an embedded lookup never leaves its tick. */
export function runStages(stages: readonly Stage[]): CallHandler {
  function from(call: Call, start: number): MaybePromise<Reply> {
    for (let index = start; index < stages.length; index += 1) {
      const outcome = (stages[index] as Stage)(call);
      if (outcome instanceof Promise) return outcome.then((reply) => reply ?? from(call, index + 1));
      if (outcome !== undefined) return outcome;
    }
    throw new Error('the last stage of a path answers');
  }
  return (call) => from(call, 0);
}
