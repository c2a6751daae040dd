import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Runs a bench into a folder of its own, and reads from it: what the README shows is made by the bench itself. */
export async function benchInto<T>(script: string, read: (folder: string) => T): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-prove-'));
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
