import { test } from 'bun:test';
import type { Flags } from '../../src/app/config/parse.ts';
import type { Service as Served } from '../../src/app/service.ts';
import { toArguments } from '../../src/cli/context.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { LogRecord } from '../../src/ops/process/log.ts';
import type { MovableClock } from './movable_clock.ts';
import { startCommand } from './processes.ts';

/** The program that suites run instead of bin/authrealm, the compiled single file for example. Undefined for bin/authrealm. */
export const TEST_PROGRAM = process.env.AUTHREALM_TEST_PROGRAM;

/**
 * The longest time that a test may advance the clock of a program: the test waits for it. Clients, keys and rights of another
 * process take effect within a second.
 */
const ADVANCE_MS_MAX = 2_000;

/** Serves a database by the program, which appends its log records to `log`. Only its URL and its end are known. */
export async function serveByProgram(program: string, flags: Flags, log: LogRecord[]): Promise<Served> {
  const running = startCommand([program, 'serve', ...toArguments(flags)]);
  const url = (await running.line(/^listening on /)).slice('listening on '.length);
  const stop = async () => {
    await running.stop();
    const lines = running.output().split('\n');
    log.push(...lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as LogRecord));
  };
  return { url, stop } as Served;
}

/** The clock of a program in another process: a test that advances it waits. */
export function waitingClock(): MovableClock {
  return {
    ...systemClock,
    advance(milliseconds) {
      if (milliseconds > ADVANCE_MS_MAX) throw new Error('this test needs a service in its own process');
      Bun.sleepSync(milliseconds);
    },
  };
}

/**
 * A test that needs a service in its own process: it replaces the engine, moves the clock far ahead, or reads the log while the
 * service runs. It is skipped where AUTHREALM_TEST_PROGRAM names a program.
 */
export const testInProcess = test.skipIf(TEST_PROGRAM !== undefined);
