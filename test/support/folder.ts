import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where this run of the suite keeps its files; test/support/preload.ts removes it. */
export const RUN_FOLDER = join(tmpdir(), `authrealm-test-${process.pid}`);

/** A fresh private folder. */
export function freshFolder(): string {
  mkdirSync(RUN_FOLDER, { recursive: true });
  return mkdtempSync(join(RUN_FOLDER, 'f-'));
}
