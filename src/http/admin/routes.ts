import type { Tokens } from '../../access/token.ts';
import type { Principal } from '../../domain/principal.ts';
import { authenticate } from '../bearer.ts';
import { readBody } from '../body.ts';
import { type Answer, type Call, type Stage, walk } from '../call.ts';
import { noteAddress } from '../operations.ts';
import { permit } from '../pipeline.ts';
import { namedRevisions, revisionReader, soleRevision } from '../precondition.ts';
import { etags } from '../present.ts';
import type { RateLimits } from '../rate_limits.ts';
import { JSON_TYPE, type Reply } from '../reply.ts';
import type { Route } from '../router.ts';
import { CLIENT_OPERATIONS } from './clients.ts';
import { DELIVERY_OPERATIONS } from './deliveries.ts';
import { LOG_OPERATIONS } from './log.ts';
import { METRICS_OPERATIONS } from './metrics.ts';
import { ADMIN_PATH, type AdminRooms, type Answered, type Asked, type Operation } from './operation.ts';
import { PERSON_OPERATIONS } from './persons.ts';
import { readData, readParameters } from './reading.ts';
import { SIGNING_KEY_OPERATIONS } from './signing_keys.ts';
import { WEBHOOK_OPERATIONS } from './webhooks.ts';

/** Every administrative operation. */
export const ADMIN_OPERATIONS: readonly Operation[] = [
  ...CLIENT_OPERATIONS,
  ...SIGNING_KEY_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...DELIVERY_OPERATIONS,
  ...LOG_OPERATIONS,
  ...PERSON_OPERATIONS,
  ...METRICS_OPERATIONS,
];

/** The scope that all of them ask for. */
export const ADMIN_SCOPE = 'admin';

export interface AdminHouse extends AdminRooms {
  readonly tokens: Tokens;
  readonly limits: RateLimits;
}

/** The paths of administration, each with its operations. */
export function adminRoutes(house: AdminHouse): readonly Route[] {
  const byPath = Map.groupBy(ADMIN_OPERATIONS, ({ path }) => path);
  return [...byPath].map(([path, operations]) => ({
    pattern: `${ADMIN_PATH}${path}`,
    answers: Object.fromEntries(operations.map((each) => [each.method, answering(each, house)])),
  }));
}

/**
 * The path of an operation: who asks (401), may they (403), the body (415, 413, 408), what query and body say (400), then
 * what it does (404, 412, 422).
 */
function answering(operation: Operation, house: AdminHouse): Answer {
  const asking = askedBy(operation, house);
  const etagOf = etags(house.baseUrl);
  const act: Stage = async (call) => replyOf(operation, await operation.act(asking(call), house), etagOf);
  const body = operation.data ? [readBody] : [];
  return walk([authenticate(house.tokens, house.limits), permit(ADMIN_SCOPE), noteAddress, ...body, act]);
}

type AnyAsked = Asked<Record<string, unknown>, Record<string, unknown>>;

/** Makes what an operation is told of a call. */
function askedBy({ query, data }: Operation, { ambient, baseUrl }: AdminHouse): (call: Call) => AnyAsked {
  const revisionOf = revisionReader(etags(baseUrl));
  return (call) => {
    const { clientId } = call.principal as Principal;
    const named = namedRevisions(call.request.headers.get('if-match'), revisionOf);
    return {
      params: call.params,
      query: query ? readParameters(query, call.request.url) : {},
      data: data ? readData(data.schema, call.body ?? '') : {},
      clientId,
      occasion: {
        ...ambient,
        asker: { actor: clientId, address: call.address(), requestId: call.requestId },
      },
      seen: (current) => soleRevision(named, current),
      url: (path) => `${baseUrl}${ADMIN_PATH}${path}`,
    };
  };
}

const DONE: Reply = Object.freeze({
  status: 204,
  headers: Object.freeze({ 'Cache-Control': 'no-store' }),
  body: null,
});

function replyOf(
  { success }: Operation,
  answered: Answered | undefined,
  etagOf: ReturnType<typeof etags>,
): Reply {
  if (!answered) return DONE;
  const { body, revision, location } = answered;
  const headers = {
    'Content-Type': JSON_TYPE,
    'Cache-Control': 'no-store',
    ...(revision === undefined ? {} : { ETag: etagOf({ revision }) }),
    ...(location === undefined ? {} : { Location: location }),
  };
  return { status: success.status, headers, body: JSON.stringify(body) };
}
