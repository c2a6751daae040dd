/** The output lines of a program that start a write and that acknowledge it. */
export interface LinePatterns {
  readonly requests: RegExp;
  readonly acknowledges: RegExp;
}

/**
 * Reads the interleaved lines of test/durability/sync.c and a program. Returns every acknowledgement without a sync of its
 * commit: one that began after the request and covers every write to the log.
 */
export function earlyAcknowledgements(
  journal: string,
  { requests, acknowledges }: LinePatterns,
): readonly string[] {
  const early: string[] = [];
  const sync = trackSync();
  for (const line of journal.split('\n')) {
    const [, what] = /^disk \d+ (\w+) .*-wal$/.exec(line) ?? [];
    if (what) sync.record(what);
    if (acknowledges.test(line) && !sync.isDone()) early.push(line);
    if (requests.test(line)) sync.reset();
  }
  return early;
}

/** Tracks whether a sync since the last reset covers everything written to the log. */
function trackSync() {
  let writes = 0;
  let covered = 0;
  let isDone = false;
  return {
    record(what: string): void {
      if (what === 'wrote') {
        writes += 1;
        isDone = false;
      }
      // A sync covers only the writes before its start.
      if (what === 'syncing') covered = writes;
      if (what === 'synced') isDone = covered === writes;
    },
    reset(): void {
      isDone = false;
    },
    isDone: () => isDone,
  };
}
