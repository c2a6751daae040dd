import { expect } from 'bun:test';
import type { TestDatabase } from './database.ts';
import { runAuthrealm } from './processes.ts';

/** Expects that `audit verify --records` finds nothing. Returns how many records it compared, and how many it could not. */
export async function verifyCleanRecords({ args }: Pick<TestDatabase, 'args'>) {
  const { code, stdout, stderr } = await runAuthrealm(['audit', 'verify', '--records', ...args]);
  expect([code, stderr, stdout]).toEqual([0, '', expect.stringMatching(/^clean$/m)]);
  const [, covered, notCovered] =
    /^(\d+) records compared with the log; (\d+) not covered by it$/m.exec(stdout) ?? [];
  return { covered: Number(covered), notCovered: Number(notCovered) };
}
