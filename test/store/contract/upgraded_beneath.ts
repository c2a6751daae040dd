import { beforeEach } from 'bun:test';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Loaded before a suite whose service runs in the suite's own process, on a file. When that service has started, and
 * before the first test, the program that AUTHREALM_TEST_UPGRADE_BENEATH names brings the schema of its file up.
 */
let upgrading: Promise<void> | undefined;

beforeEach(() => {
  upgrading ??= upgrade();
  return upgrading;
});

async function upgrade(): Promise<void> {
  const [name, ...others] = new Bun.Glob('*/*/test.db').scanSync(tmpdir());
  if (name === undefined || others.length > 0) throw new Error('the suite has not one database');
  const program = process.env.AUTHREALM_TEST_UPGRADE_BENEATH ?? '';
  const child = Bun.spawn([process.execPath, program, `sqlite:${join(tmpdir(), name)}`], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if ((await child.exited) !== 0) throw new Error(`${program} failed`);
}
