import type { TestDatabase } from '../test/database.ts';
import type { Data } from '../test/family.ts';
import { AUTHREALM, runCommand } from '../test/processes.ts';

const ATTEMPTS_MAX = 5;
const PAUSE_MS = 500;

/** Who works on a database from the command line, beside the service. Rejects where a command does not succeed. */
export interface Operator {
  /** Imports records, each a line. */
  bring(records: readonly Data[]): Promise<void>;
  purgeRealm(id: string): Promise<void>;
}

export function operatorOf({ words: on }: TestDatabase): Operator {
  /** What does not succeed in trouble is run again: each of these goes on where it was. */
  async function run(words: readonly string[], input = '', attempts = ATTEMPTS_MAX): Promise<void> {
    const { code, stderr } = await runCommand([AUTHREALM, ...words, ...on], {}, input);
    if (code === 0) return;
    if (attempts === 1) throw new Error(`${words[0]} ended with ${code}: ${stderr}`);
    await Bun.sleep(PAUSE_MS);
    return run(words, input, attempts - 1);
  }
  return {
    bring: (records) => run(['import', '-'], records.map((record) => JSON.stringify(record)).join('\n')),
    purgeRealm: (id) => run(['purge', 'realm', id]),
  };
}
