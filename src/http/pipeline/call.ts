import type { IpAddress } from '../../model/ip_address.ts';
import type { RefusedAccess } from '../../model/log/refused_access.ts';
import type { Principal } from '../../model/principal.ts';
import type { AnyRecord, Key, KeyPrefix } from '../../model/resource.ts';
import type { MaybePromise } from '../../model/store.ts';
import type { Reply } from '../server/reply.ts';
import { NO_CHILDREN } from './query.ts';

export type Call = ReturnType<typeof openCall>;

/** The header fields of draft-ietf-httpapi-ratelimit-headers. */
export type RateHeaders = Readonly<Record<'RateLimit' | 'RateLimit-Policy', string>>;

/**
 * One request in progress. A stage sets fields, and reads only fields that earlier stages have set. It has all fields from the start, so
 * that its object shape never changes.
 */
export function openCall(
  request: Request,
  /** The decoded path parameters. */
  params: Readonly<Record<string, string>>,
  requestId: string,
  addressOf: (request: Request) => IpAddress | undefined,
) {
  let isRead = false;
  let address: IpAddress | undefined;
  return {
    request,
    params,
    requestId,
    /**
     * The caller's address; undefined if the connection has none or was already closed. The socket is read on the first
     * call only.
     */
    address(): IpAddress | undefined {
      if (!isRead) address = addressOf(request);
      isRead = true;
      return address;
    },
    /** The Authorization header. */
    authorization: request.headers.get('authorization'),
    principal: undefined as Principal | undefined,
    key: undefined as Key | undefined,
    /** The parents of a collection. */
    scope: undefined as KeyPrefix | undefined,
    /** The resources whose records a list or search includes, as the parameter `include` asks. */
    included: NO_CHILDREN,
    /** The text of the body. */
    body: undefined as string | undefined,
    record: undefined as AnyRecord | undefined,
    etag: undefined as string | undefined,
    /** Why access was denied. */
    refused: undefined as RefusedAccess | undefined,
    /** The existing client that the credentials in a form name; it is authenticated unless `refused` is `bad credentials`. */
    client: undefined as string | undefined,
    /** The address of the end user; undefined if the client reports none. */
    endUserAddress: undefined as IpAddress | undefined,
    /** The rate limit headers; undefined if no limit has counted the call. */
    rateHeaders: undefined as RateHeaders | undefined,
  };
}

/** A step of an operation: it returns the reply, which ends the request, or sets fields of the call. */
export type Stage = (call: Call) => MaybePromise<Reply | undefined>;

/** Answers a call. */
export type CallHandler = (call: Call) => MaybePromise<Reply>;

/**
 * Runs the stages in order. It awaits only stages that return a promise, so an embedded lookup never leaves
 * its tick.
 */
export function runStages(stages: readonly Stage[]): CallHandler {
  return function run(call, start = 0): MaybePromise<Reply> {
    for (let index = start; index < stages.length; index += 1) {
      const outcome = (stages[index] as Stage)(call);
      if (outcome instanceof Promise) return outcome.then((reply) => reply ?? run(call, index + 1));
      if (outcome !== undefined) return outcome;
    }
    throw new Error('the last stage of an operation must reply');
  };
}
