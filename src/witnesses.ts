import { hostname } from 'node:os';
import { startCheckpoints } from './audit/checkpoints.ts';
import type { LogKeys } from './audit/keys.ts';
import type { Witness } from './audit/ledger.ts';
import { checkpointFileOf, type Settings } from './config.ts';
import type { Ambient } from './domain/id.ts';
import { LIMITS } from './domain/limits.ts';
import { appendLines } from './durable.ts';
import { openLeases } from './leases.ts';
import type { Log } from './observe/log.ts';
import { type Engine, isInMemory } from './store/open.ts';

/**
 * Those outside of the database who are told how far its logs are, and who was erased: a file, or else whoever reads the
 * log of the service. What is in memory has nothing outside of it.
 */
export function witnessesOf(settings: Settings, log?: Log): readonly Witness[] {
  if (isInMemory(settings.database)) return [];
  const file = checkpointFileOf(settings);
  if (file !== undefined) return [async (lines) => appendLines(file, lines)];
  if (!log) return [];
  return [
    async (lines) => {
      for (const line of lines) log.write({ event: 'checkpoint', line });
    },
  ];
}

/** Who tells renews every minute; where it did not, another process tells from the second minute on. */
const TERM_MS = 1.5 * LIMITS.checkpointMs;

/** Tells outside of the database every minute how far its logs are. */
export function tellCheckpoints(
  settings: Settings,
  { engine, logKeys }: { readonly engine: Engine; readonly logKeys: LogKeys },
  log: Log,
  ambient: Ambient,
): { stop(): Promise<void> } {
  return startCheckpoints({
    store: engine.log,
    leases: openLeases(engine.leases, TERM_MS, ambient),
    keys: logKeys,
    witnesses: witnessesOf(settings, log),
    ambient,
    retentionDays: settings.retentionDays,
    name: `${hostname()} ${checkpointFileOf(settings) ?? ''}`,
    onTrouble: ({ code = 'unknown' }) => log.write({ event: 'checkpoint_failed', cause: code }),
  });
}
