import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fillByImport } from '../../bench/import_rate.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';

/** Time limit for checking a healthy database of a million users. */
const SECONDS_MAX = 60;

const { values: options } = parseArgs({ options: { users: { type: 'string', default: '1000000' } } });
const users = Number(options.users);
const folder = mkdtempSync(join(tmpdir(), 'authrealm-doctor-'));
try {
  const database = `sqlite:${join(folder, 'healthy.db')}`;
  await fillByImport(AUTHREALM, ['--database', database], users);
  const start = performance.now();
  const { code, stdout, stderr } = await runCommand([AUTHREALM, 'doctor', '--database', database]);
  const seconds = (performance.now() - start) / 1000;
  const isHealthy = code === 0;
  if (!isHealthy) console.log(`${stdout}${stderr}`);
  const result = isHealthy ? 'no findings' : `exited with ${code}`;
  console.log(`${users.toLocaleString('en')} users checked in ${seconds.toFixed(1)} s, ${result}`);
  process.exitCode = isHealthy && seconds < SECONDS_MAX ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true });
}
