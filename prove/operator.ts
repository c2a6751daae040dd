import type { TestDatabase } from '../test/database.ts';
import type { Data } from '../test/family.ts';
import { AUTHREALM, runCommand } from '../test/processes.ts';

/** Who works on a database from the command line, beside the service. Rejects where a command does not succeed. */
export interface Operator {
  /** Imports records, each a line. */
  bring(records: readonly Data[]): Promise<void>;
  purgeRealm(id: string): Promise<void>;
}

export function operatorOf({ words: on }: TestDatabase): Operator {
  async function run(words: readonly string[], input = ''): Promise<void> {
    const { code, stderr } = await runCommand([AUTHREALM, ...words, ...on], {}, input);
    if (code !== 0) throw new Error(`${words[0]} ended with ${code}: ${stderr}`);
  }
  return {
    bring: (records) => run(['import', '-'], records.map((record) => JSON.stringify(record)).join('\n')),
    purgeRealm: (id) => run(['purge', 'realm', id]),
  };
}
