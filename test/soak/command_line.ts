import type { TestDatabase } from '../support/database.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import type { Data } from '../support/resource_cases.ts';

const ATTEMPTS_MAX = 5;
const PAUSE_MS = 500;

/** Runs commands on a database concurrently with the service. Rejects when a command keeps failing. */
export interface CommandLine {
  importRecords(records: readonly Data[]): Promise<void>;
  deleteRealm(id: string): Promise<void>;
}

export function openCommandLine({ args: on }: TestDatabase): CommandLine {
  /** Retries: during a fault a command may fail, and each of these commands can be resumed. */
  async function run(words: readonly string[], input = '', isDone = (_: string) => false): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const { code, stderr } = await runCommand([AUTHREALM, ...words, ...on], {}, input);
      if (code === 0 || (attempt > 1 && isDone(stderr))) return;
      if (attempt === ATTEMPTS_MAX) throw new Error(`${words[0]} exited with ${code}: ${stderr}`);
      await Bun.sleep(PAUSE_MS);
    }
  }
  return {
    importRecords: (records) =>
      run(['import', '-'], records.map((record) => JSON.stringify(record)).join('\n')),
    // A failed attempt may have completed it.
    deleteRealm: (id) =>
      run(['delete', '--in-pages', '--yes', 'realm', id], '', (stderr) => stderr.includes('no such record')),
  };
}
