import { beforeEach } from 'bun:test';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Preloaded into a suite whose service runs in the suite's process on a SQLite file. After the service has started and
 * before the first test, the program in AUTHREALM_TEST_UPGRADE_SCRIPT migrates the schema of that file.
 */
let upgrading: Promise<void> | undefined;

beforeEach(() => {
  upgrading ??= upgrade();
  return upgrading;
});

async function upgrade(): Promise<void> {
  const [name, ...others] = new Bun.Glob('*/*/test.db').scanSync(tmpdir());
  if (name === undefined || others.length > 0)
    throw new Error('expected exactly one database file of the suite');
  const program = process.env.AUTHREALM_TEST_UPGRADE_SCRIPT ?? '';
  const child = Bun.spawn([process.execPath, program, `sqlite:${join(tmpdir(), name)}`], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if ((await child.exited) !== 0) throw new Error(`${program} failed`);
}
