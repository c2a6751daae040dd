import { z } from 'zod';
import type { ZodOpenApiResponseObject } from 'zod-openapi';
import type { AuthCache } from '../../access/tokens/auth_cache.ts';
import { FAULTS, Fault, type FieldError } from '../../model/fault.ts';
import type { MaybePromise } from '../../model/store.ts';
import { faultExample } from '../openapi/examples.ts';
import { ALWAYS, EXTENSION, HEADERS } from '../openapi/responses.ts';
import { errorsShape } from '../openapi/schemas.ts';
import type { CallHandler } from '../pipeline/call.ts';
import type { OperationDeps } from '../pipeline/pipeline.ts';
import { documentReply, faultReply, JSON_TYPE, replyOf } from '../server/reply.ts';

/** The dependencies of a lookup. The response has only the names; the reason is in the log. */
const DEPENDENCIES = ['database', 'access_table'] as const;

/** The dependencies of the operations about the service itself. */
export interface ServiceDeps extends OperationDeps {
  readonly access: AuthCache;
  /** Whether the service stops. */
  readonly isDraining: () => boolean;
  /** Makes the OpenAPI document. */
  readonly describe: () => Promise<object>;
}

/**
 * Ready means that a lookup can be answered. Throws Fault `not_ready` otherwise, with the state of each
 * dependency.
 */
export function readiness({ store, access, isDraining }: ServiceDeps, caching: string): CallHandler {
  const ready = documentReply(READY.example(), caching);
  return async () => {
    if (isDraining()) return faultReply('not_ready');
    const results = await Promise.all([probe(() => store.ready()), probe(() => access.fresh())]);
    const failure = results.find((result) => result instanceof Fault);
    const [nodes] = results;
    if (!failure) return nodes ? documentReply({ ...READY.example(), nodes }, caching) : ready;
    const fieldErrors = DEPENDENCIES.map(
      (field, index): FieldError => ({ field, rule: results[index] instanceof Fault ? 'in trouble' : 'ok' }),
    );
    throw new Fault('not_ready', fieldErrors, failure.cause ?? failure);
  };
}

/** Returns the Fault of status 503 that the work throws or rejects with where the dependency does not work. */
async function probe<T>(work: () => MaybePromise<T>): Promise<T | Fault> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Fault && FAULTS[error.code].status === 503) return error;
    throw error;
  }
}

function dependenciesOf(state: z.ZodType) {
  return z.strictObject(Object.fromEntries(DEPENDENCIES.map((name) => [name, state])));
}

/** The response of a service that is ready. */
export const READY = {
  schema: () =>
    z.strictObject({
      status: z.literal('ok'),
      dependencies: dependenciesOf(z.literal('ok')),
      nodes: z
        .strictObject({ reachable: z.int().min(0), total: z.int().min(1) })
        .optional()
        .meta({
          description:
            'On a Citus cluster: the number of its nodes, and of those that are reachable. Requests for records on the others ' +
            'get 503. Left out while the connections that count them are busy.',
        }),
    }),
  example: () => ({ status: 'ok', dependencies: { database: 'ok', access_table: 'ok' } }),
};

/** The response of a service that is not ready; it names the failing dependencies if they were found in time. */
export function unreadyResponse(): ZodOpenApiResponseObject {
  const fieldErrors = [
    { field: 'database', rule: 'ok' },
    { field: 'access_table', rule: 'in trouble' },
  ];
  const schema = z
    .strictObject({ ...errorsShape, dependencies: dependenciesOf(z.enum(['ok', 'in trouble'])).optional() })
    .meta({ id: 'Unready' });
  const examples = {
    not_ready: { value: JSON.parse(replyOf(new Fault('not_ready', fieldErrors)).body as string) },
    unavailable: { value: faultExample('unavailable') },
  };
  return {
    ...EXTENSION,
    description:
      'Lookups cannot be answered, where `dependencies` names the failing dependency, or the service stops.',
    headers: z.object({ ...ALWAYS, 'Cache-Control': HEADERS.noStore, 'Retry-After': HEADERS.retryAfter }),
    content: { [JSON_TYPE]: { schema, examples } },
  };
}
