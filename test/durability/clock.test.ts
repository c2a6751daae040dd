import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from '../support/service.ts';
import { buildLibrary } from './disk.ts';

const HOUR_MS = 3_600_000;
const TELL = 'console.log(Date.now())';

/** What a program takes for now, with its clock moved by so much. */
function nowBy(milliseconds: number): number {
  const moved = join(freshFolder(), 'clock');
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(milliseconds) * 1_000_000n);
  writeFileSync(moved, bytes);
  const env = { PATH: process.env.PATH ?? '', LD_PRELOAD: buildLibrary('clock'), FORCE_CLOCK: moved };
  const { stdout } = Bun.spawnSync([process.execPath, '-e', TELL], { env });
  return Number(stdout.toString());
}

test.each([0, HOUR_MS, -HOUR_MS, 1_500])('a clock is moved by %d ms', (milliseconds) => {
  const wanted = Date.now() + milliseconds;
  expect(nowBy(milliseconds)).toBeWithin(wanted - 1, wanted + 10_000);
});
