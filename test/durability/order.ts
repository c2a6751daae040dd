/** Which lines of a program say that something is kept, and after which of its lines that has to be written. */
export interface Words {
  readonly asks: RegExp;
  readonly acknowledges: RegExp;
}

/**
 * Reads the lines that test/durability/sync.c and a program wrote in turn, and answers every acknowledgement that left before
 * the sync of its commit: between the asking and it, the log was synced, and nothing was written to the log since.
 */
export function earlyAcknowledgements(journal: string, { asks, acknowledges }: Words): readonly string[] {
  const early: string[] = [];
  const sync = watchSync();
  for (const line of journal.split('\n')) {
    const [, what] = /^disk \d+ (\w+) .*-wal$/.exec(line) ?? [];
    if (what) sync.see(what);
    if (acknowledges.test(line) && !sync.isDone()) early.push(line);
    if (asks.test(line)) sync.forget();
  }
  return early;
}

/** Whether everything written to the log is on disk, as far as the disk said since it was last forgotten. */
function watchSync() {
  let writes = 0;
  let covered = 0;
  let isDone = false;
  return {
    see(what: string): void {
      if (what === 'wrote') {
        writes += 1;
        isDone = false;
      }
      // A sync is only as good as what was written before it began.
      if (what === 'syncing') covered = writes;
      if (what === 'synced') isDone = covered === writes;
    },
    forget(): void {
      isDone = false;
    },
    isDone: () => isDone,
  };
}
