import { z } from 'zod';
import type { ZodOpenApiResponseObject } from 'zod-openapi';
import type { AuthCache } from '../../auth/tokens/auth_cache.ts';
import type { Store } from '../../directory/store.ts';
import { FAULTS, Fault, type FieldError } from '../../domain/fault.ts';
import { faultExample } from '../openapi/examples.ts';
import { ALWAYS, EXTENSION, HEADERS } from '../openapi/responses.ts';
import { errorsShape } from '../openapi/schemas.ts';
import type { CallHandler } from '../pipeline/call.ts';
import { documentReply, JSON_TYPE, replyOf } from '../server/reply.ts';

/** The dependencies of a lookup. The response has only the names; the reason is in the log. */
const DEPENDENCIES = ['database', 'access_table'] as const;

/** The states of a dependency. */
const STATES = ['ok', 'in trouble'] as const;

type Dependency = (typeof DEPENDENCIES)[number];

/** Returns or resolves if the dependency works; throws or rejects with a Fault of status 503 if it does not. */
type Probes = Readonly<Record<Dependency, () => unknown>>;

export interface ReadinessDeps {
  readonly store: Pick<Store, 'ready'>;
  readonly access: AuthCache;
}

/**
 * Ready means that a lookup can be answered. Throws Fault `not_ready` otherwise, with the state of each
 * dependency.
 */
export function readiness({ store, access }: ReadinessDeps, caching: string): CallHandler {
  const probes: Probes = { database: () => store.ready(), access_table: () => access.fresh() };
  const ready = documentReply(READY.example(), caching);
  return async () => {
    const failures = await Promise.all(DEPENDENCIES.map((name) => failureOf(probes[name])));
    if (failures.every((failure) => failure === undefined)) return ready;
    const fieldErrors = DEPENDENCIES.map(
      (field, place): FieldError => ({ field, rule: failures[place] ? 'in trouble' : 'ok' }),
    );
    const first = failures.find((failure) => failure !== undefined);
    throw new Fault('not_ready', fieldErrors, first?.cause ?? first);
  };
}

/** The failure that a dependency reports; any other error is rethrown. */
async function failureOf(probe: () => unknown): Promise<Fault | undefined> {
  try {
    await probe();
    return undefined;
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
  schema: () => z.strictObject({ status: z.literal('ok'), dependencies: dependenciesOf(z.literal('ok')) }),
  example: () => ({
    status: 'ok',
    dependencies: Object.fromEntries(DEPENDENCIES.map((name) => [name, 'ok'])),
  }),
};

/** The response of a service that is not ready; it names the failing dependencies if they were found in time. */
export function unreadyResponse(): ZodOpenApiResponseObject {
  const fieldErrors = DEPENDENCIES.map((field, place) => ({
    field,
    rule: place === 0 ? 'ok' : 'in trouble',
  }));
  const schema = z
    .strictObject({ ...errorsShape, dependencies: dependenciesOf(z.enum(STATES)).optional() })
    .meta({ id: 'Unready' });
  const examples = {
    not_ready: { value: JSON.parse(replyOf(new Fault('not_ready', fieldErrors)).body as string) },
    unavailable: { value: faultExample('unavailable') },
  };
  return {
    ...EXTENSION,
    description: 'Lookups cannot be answered; `dependencies` names the failing dependency.',
    headers: z.object({
      ...ALWAYS,
      'Cache-Control': HEADERS.noStore,
      'Retry-After': HEADERS.retryAfter,
    }),
    content: { [JSON_TYPE]: { schema, examples } },
  };
}
