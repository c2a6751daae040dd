import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from '../support/service.ts';
import { buildLibrary } from './disk.ts';

const HOUR_MS = 3_600_000;
const PRINT_TIME = 'console.log(Date.now())';

/** The current time in a program whose clock is shifted. */
function shiftedNow(milliseconds: number): number {
  const offsetFile = join(freshFolder(), 'clock');
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(milliseconds) * 1_000_000n);
  writeFileSync(offsetFile, bytes);
  const env = { PATH: process.env.PATH ?? '', LD_PRELOAD: buildLibrary('clock'), FORCE_CLOCK: offsetFile };
  const { stdout } = Bun.spawnSync([process.execPath, '-e', PRINT_TIME], { env });
  return Number(stdout.toString());
}

test.each([0, HOUR_MS, -HOUR_MS, 1_500])(
  'the library shifts the clock of a program by %d ms',
  (milliseconds) => {
    const expected = Date.now() + milliseconds;
    expect(shiftedNow(milliseconds)).toBeWithin(expected - 1, expected + 10_000);
  },
);
