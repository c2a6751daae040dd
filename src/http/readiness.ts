import type { AccessCache } from '../access/table.ts';
import type { Store } from '../directory/store.ts';
import { type Complaint, FAULTS, Fault } from '../domain/fault.ts';
import type { Answer } from './call.ts';
import { documentReply, type Reply } from './reply.ts';

/** What a lookup needs. Names alone are told: no address, and no reason, which the log has. */
export const DEPENDENCIES = ['database', 'access_table'] as const;

/** What can be said of one. */
export const STATES = ['ok', 'in trouble'] as const;

type Dependency = (typeof DEPENDENCIES)[number];

/** Settles where the dependency is well; throws or rejects with a Fault of status 503 where it is not. */
type Probes = Readonly<Record<Dependency, () => unknown>>;

interface Rooms {
  readonly store: Pick<Store, 'ready'>;
  readonly access: AccessCache;
}

/** Ready means: a lookup would be answered now. Throws Fault `not_ready` otherwise, with the state of each dependency. */
export function readiness({ store, access }: Rooms): Answer {
  const probes: Probes = { database: () => store.ready(), access_table: () => access.fresh() };
  const well = wellReply();
  return async () => {
    const troubles = await Promise.all(DEPENDENCIES.map((name) => troubleOf(probes[name])));
    if (troubles.every((trouble) => trouble === undefined)) return well;
    const complaints = DEPENDENCIES.map(
      (field, place): Complaint => ({ field, rule: troubles[place] ? 'in trouble' : 'ok' }),
    );
    const first = troubles.find((trouble) => trouble !== undefined);
    throw new Fault('not_ready', complaints, first?.cause ?? first);
  };
}

/** What is wrong, where the dependency itself says so; a bug is thrown on. */
async function troubleOf(probe: () => unknown): Promise<Fault | undefined> {
  try {
    await probe();
    return undefined;
  } catch (error) {
    if (error instanceof Fault && FAULTS[error.code].status === 503) return error;
    throw error;
  }
}

function wellReply(): Reply {
  const dependencies = Object.fromEntries(DEPENDENCIES.map((name) => [name, 'ok']));
  return documentReply({ status: 'ok', dependencies }, 'no-store');
}
