import type { TestDatabase } from '../support/database.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import type { Data } from '../support/resource_cases.ts';

const ATTEMPTS_MAX = 5;
const PAUSE_MS = 500;

/** Who works on a database from the command line, beside the service. Rejects where a command does not succeed. */
export interface Operator {
  /** Imports records, each a line. */
  bring(records: readonly Data[]): Promise<void>;
  purgeRealm(id: string): Promise<void>;
}

export function operatorOf({ args: on }: TestDatabase): Operator {
  /** What does not succeed in trouble is run again: each of these goes on where it was. */
  async function run(words: readonly string[], input = '', isDone = (_: string) => false): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const { code, stderr } = await runCommand([AUTHREALM, ...words, ...on], {}, input);
      if (code === 0 || (attempt > 1 && isDone(stderr))) return;
      if (attempt === ATTEMPTS_MAX) throw new Error(`${words[0]} ended with ${code}: ${stderr}`);
      await Bun.sleep(PAUSE_MS);
    }
  }
  return {
    bring: (records) => run(['import', '-'], records.map((record) => JSON.stringify(record)).join('\n')),
    // One that failed may have done it all.
    purgeRealm: (id) => run(['purge', 'realm', id], '', (said) => said.includes('no such record')),
  };
}
