import { LINK_ACTOR_PREFIX } from '../access/sessions/sessions.ts';
import type { LoopBudget } from '../http/pipeline/loop_budget.ts';
import { erasureLine } from '../log/checkpoint.ts';
import { openPerson, type Person } from '../log/keys.ts';
import { eraseUser } from '../log/person_erasure.ts';
import { type LogReading, openLogReading } from '../log/reading.ts';
import { subjectAccess } from '../log/subject_access.ts';
import { Fault } from '../model/fault.ts';
import type { AuditContext } from '../model/log/audit_entry.ts';
import type { SignInBudgets } from '../sign_in/budgets.ts';
import { appendLines } from '../sql/fsync.ts';
import { checkpointFileOf, urlRule } from './config/parse.ts';
import type { ServiceContext } from './service_context.ts';

/** Administration over HTTP: clients, keys, webhooks, the console, the audit log, the data of a person, imports and exports. */
export function openAdministration(
  { engine, keyring, logKeys, loopBudget, settings }: ServiceContext,
  budgets: Pick<SignInBudgets, 'refill'>,
) {
  const checkpointFile = checkpointFileOf(settings);
  const reading = openLogReading(engine.log, logKeys);
  const auditDeps = { records: engine.records, log: engine.log, reading: inTurns(reading, loopBudget) };
  return {
    engine,
    accessStore: engine.access,
    webhooks: { store: engine.webhooks, keyring, brokenUrlRule: urlRule(settings) },
    logStore: engine.log,
    logReading: reading,
    /** The import and the export in progress. Each ends with its entry in the log. */
    transfers: new Map<unknown, Promise<void>>(),
    /** The sessions of the console that have not ended, with the names of their users. */
    async consoleSessions(now: number) {
      // The values of a forged row may be anything.
      const genuine = (await engine.access.consoleSessions(now)).filter(({ isForged }) => !isForged);
      return genuine.map(({ actor, person, ...session }) => {
        // A session by a link has no person.
        if (person === undefined) return { ...session, actor, label: actor.replace(LINK_ACTOR_PREFIX, '') };
        const { name } = openPerson(logKeys, person) as { readonly name: string };
        return { ...session, actor, label: name };
      });
    },
    /** Everything held about a user. */
    subjectAccess: (person: Person, auditContext: AuditContext) =>
      subjectAccess(auditDeps, person, auditContext),
    /** Erases a user; undefined if there is no trace of one. `bytes`: undefined where database files still have some. */
    async erase(person: Person, auditContext: AuditContext) {
      const erased = await eraseUser(
        {
          ...auditDeps,
          removeBuckets: budgets.refill,
          async report(erasure) {
            if (checkpointFile === undefined) return;
            appendLines(checkpointFile, [erasureLine(erasure, logKeys)]);
            // An erasure without this mark is reported again, which does no harm.
            await engine.log.markErasuresReported([erasure], auditContext.now()).catch(ignoreFault);
          },
        },
        person,
        auditContext,
      );
      if (!erased) return undefined;
      // The user is erased even if this fails, and the next checkpoint of the write-ahead log does the same.
      return { ...erased, bytes: engine.removeErasedBytes().catch(ignoreFault) };
    },
  };
}

/** A user may have a long history: each page of its entries waits for a turn of the event loop. */
function inTurns(reading: LogReading, { turn }: Pick<LoopBudget, 'turn'>): LogReading {
  return {
    ...reading,
    async entriesOf(...page) {
      await turn();
      return reading.entriesOf(...page);
    },
  };
}

/** Ignores failures of the database, after which the step can be repeated; rethrows bugs. */
function ignoreFault(error: unknown): undefined {
  if (!(error instanceof Fault)) throw error;
}
