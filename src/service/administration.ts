import { erasureLine } from '../audit/checkpoint.ts';
import type { LogKeys } from '../audit/log_keys.ts';
import { eraseUser } from '../audit/person_erasure.ts';
import { type LogReading, openLogReading } from '../audit/reading.ts';
import { subjectAccess } from '../audit/subject_access.ts';
import type { Keyring } from '../auth/keys/keyring.ts';
import { removeBuckets } from '../auth/sign_in/budgets.ts';
import { checkpointFileOf, type Settings, urlRule } from '../config/parse.ts';
import { Fault } from '../domain/fault.ts';
import { type Clock, NIL_UUID } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { testMessage } from '../events/webhooks/message.ts';
import { openSender } from '../events/webhooks/sender.ts';
import type { AdminDeps } from '../http/operations/admin/operation.ts';
import type { LoopBudget } from '../http/pipeline/loop_budget.ts';
import { openGuardedPost } from '../outbound/guarded_post.ts';
import { appendLines } from '../platform/fsync.ts';
import type { Log } from '../platform/log.ts';
import type { Engine } from '../store/open.ts';
import { outboundRules } from './outbound.ts';

/** Dependencies of administration over HTTP. */
interface AdministrationDeps {
  readonly engine: Engine;
  readonly keyring: Keyring;
  readonly logKeys: LogKeys;
  readonly metrics: AdminDeps['metrics'];
  readonly settings: Settings;
  readonly log: Log;
  readonly clock: Clock;
  readonly loopBudget: Pick<LoopBudget, 'turn'>;
}

type AdministrationOperations = Pick<
  AdminDeps,
  | 'accessStore'
  | 'keyring'
  | 'webhooks'
  | 'sendTest'
  | 'logStore'
  | 'logReading'
  | 'metrics'
  | 'erase'
  | 'subjectAccess'
>;

/** The operations of administration over HTTP: clients, keys, webhooks, the audit log, and the data of a person. */
export function openAdministration(deps: AdministrationDeps): AdministrationOperations {
  const { engine, keyring, logKeys, metrics, loopBudget, settings, log, clock } = deps;
  const checkpointFile = checkpointFileOf(settings);
  const post = openGuardedPost(outboundRules(settings, log));
  const send = openSender({ keyring, post, clock });
  const reading = openLogReading(engine.log, logKeys);
  const auditDeps = { records: engine.records, log: engine.log, reading: inTurns(reading, loopBudget) };
  return {
    accessStore: engine.access,
    keyring,
    webhooks: { store: engine.webhooks, keyring, brokenUrlRule: urlRule(settings) },
    sendTest(webhook, source) {
      const signal = AbortSignal.timeout(LIMITS.webhookMsMax);
      return send(webhook, testMessage(webhook, source, clock), { realm: NIL_UUID, attempt: 1, signal });
    },
    logStore: engine.log,
    logReading: reading,
    metrics,
    subjectAccess: (person, auditContext) => subjectAccess(auditDeps, person, auditContext),
    async erase(person, auditContext) {
      const erased = await eraseUser(
        {
          ...auditDeps,
          removeBuckets: (name) => removeBuckets(engine.budgets, logKeys, name),
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
