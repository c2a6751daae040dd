import { hostname } from 'node:os';
import { type Checkpoints, startCheckpoints } from '../log/checkpoints.ts';
import { LIMITS } from '../model/limits.ts';
import { appendLines } from '../sql/fsync.ts';
import { openLease } from '../sql/job_leases.ts';
import { checkpointFileOf } from './config/parse.ts';
import type { ServiceContext } from './service_context.ts';

/** The lease holder renews every minute; after two minutes another process takes over. */
const TERM_MS = 1.5 * LIMITS.checkpointMs;

const NO_CHECKPOINTS: Checkpoints = { ageMs: () => undefined, stop: async () => undefined };

/** Writes checkpoints and erasures to the file of these settings every minute, if they have one. */
export function startCheckpointFile({ settings, engine, logKeys, log, clock }: ServiceContext): Checkpoints {
  const file = checkpointFileOf(settings);
  if (file === undefined) return NO_CHECKPOINTS;
  return startCheckpoints({
    store: engine.log,
    // The same for processes that share the file.
    lease: openLease(engine.leases, `checkpoints ${hostname()} ${file}`, TERM_MS, clock),
    keys: logKeys,
    append: (lines) => appendLines(file, lines),
    retentionDays: settings.retentionDays,
    clock,
    onError: ({ code = 'unknown' }, since) =>
      log.write({ event: 'checkpoint_failed', cause: code, since: new Date(since).toISOString() }),
  });
}
