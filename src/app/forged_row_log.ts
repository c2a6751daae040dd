import type { Log } from '../ops/process/log.ts';

/** Logs each forged row once. */
export function openForgedRowLog(log: Pick<Log, 'write'>) {
  const known = new Set<string>();
  return (table: string, id: string): void => {
    if (known.has(`${table} ${id}`)) return;
    known.add(`${table} ${id}`);
    log.write({ event: 'forged_row', table, id });
  };
}
