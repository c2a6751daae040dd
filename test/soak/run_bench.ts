import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Runs a bench into a temporary folder and reads its results; only the bench itself writes bench/results. */
export async function runBench<T>(script: string, read: (folder: string) => T): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-bench-'));
  try {
    const path = join(import.meta.dir, '../../bench', script);
    const child = Bun.spawn([process.execPath, path, '--out', folder], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    if ((await child.exited) !== 0) throw new Error(`bench/${script} failed`);
    return read(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
