import { closeSync, openSync } from 'node:fs';
import type { Log } from './log.ts';

const PROBE_MS = 1_000;
const REPORT_MS = 60_000;

/** Logs when no descriptor is left, which the runtime does not report. */
export function watchDescriptors(log: Pick<Log, 'write'>): { stop(): void } {
  let reportedAt = Number.NEGATIVE_INFINITY;
  const timer = setInterval(() => {
    const cause = probe();
    if (cause === undefined || performance.now() - reportedAt < REPORT_MS) return;
    reportedAt = performance.now();
    log.write({ event: 'out_of_descriptors', cause });
  }, PROBE_MS);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}

function probe(): string | undefined {
  try {
    closeSync(openSync('/dev/null', 'r'));
    return undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'EMFILE' || code === 'ENFILE' ? code : undefined;
  }
}
