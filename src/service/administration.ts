import { erasureLine } from '../audit/checkpoint.ts';
import { type CheckpointSink, writeToAll } from '../audit/checkpoint_sink.ts';
import type { LogKeys } from '../audit/log_keys.ts';
import { eraseUser } from '../audit/person_erasure.ts';
import type { SearchFile } from '../audit/port.ts';
import { openLogReading } from '../audit/reading.ts';
import { subjectAccess } from '../audit/subject_access.ts';
import type { Keyring } from '../auth/keys/keyring.ts';
import { Fault } from '../domain/fault.ts';
import type { AdminDeps } from '../http/operations/admin/operation.ts';
import type { Snapshot } from '../metrics/family.ts';
import type { Engine } from '../store/open.ts';

/** What administration over HTTP works with. */
interface Means {
  readonly engine: Engine;
  readonly keyring: Keyring;
  readonly logKeys: LogKeys;
  readonly checkpointSinks: readonly CheckpointSink[];
  readonly search: SearchFile;
  readonly metrics: () => Promise<Snapshot>;
  /** Whether events may be sent to a URL. */
  readonly mayTell: (url: string) => boolean;
}

type Offices = Pick<
  AdminDeps,
  'accessStore' | 'keyring' | 'webhooks' | 'logStore' | 'logReading' | 'metrics' | 'erase' | 'subjectAccess'
>;

/** Makes what administration over HTTP does beyond clients and keys. */
export function openAdministration(means: Means): Offices {
  const { engine, keyring, logKeys, checkpointSinks, search, metrics, mayTell } = means;
  const reading = openLogReading(engine.log, logKeys);
  const rooms = { records: engine.records, log: engine.log, reading };
  return {
    accessStore: engine.access,
    keyring,
    webhooks: { store: engine.webhooks, keyring, isAllowed: mayTell },
    logStore: engine.log,
    logReading: reading,
    metrics,
    subjectAccess: (person, auditContext) => subjectAccess(rooms, person, auditContext),
    async erase(person, auditContext) {
      const erasing = await eraseUser(
        {
          ...rooms,
          scrub: engine.scrub,
          async report(erasure) {
            await writeToAll(checkpointSinks, [erasureLine(erasure, logKeys)]);
            // Where it cannot be noted it is told once more.
            await engine.log.markErasuresReported([erasure], auditContext.now()).catch(unlessFault);
          },
        },
        person,
        auditContext,
      );
      if (!erasing) return undefined;
      // What cannot be done now is the command line's to do; the user is erased all the same.
      const scrubbed = erasing.scrub({ search, mayRewrite: false }).catch(unlessFault);
      return { erasure: erasing.erasure, untold: erasing.reportError, scrubbed };
    },
  };
}

/** A database in trouble is a reason to leave something for later; a bug is none. */
function unlessFault(error: unknown): undefined {
  if (!(error instanceof Fault)) throw error;
}
