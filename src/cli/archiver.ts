import { statSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import type { Command } from 'commander';
import { type Archiver, besideCommand, type Errand, runErrand } from '../app.ts';
import { Refusal } from '../domain/fault.ts';
import { signalled } from './serve.ts';

/** The hidden command of a process that copies a database, or looks one through. */
const ARCHIVER_COMMAND = 'archiver';

type Told = { readonly answer: unknown } | { readonly refusal: string };

/** One errand comes over the channel to the parent; what became of it goes back. */
export function addArchiver(program: Command): void {
  program.command(ARCHIVER_COMMAND, { hidden: true }).action(async () => {
    // First of all: a channel that is closed while nobody heeds it keeps the runtime turning for ever.
    process.once('disconnect', () => process.exit());
    if (!process.connected)
      throw new Refusal('this command is started by a backup or a restoration', { isUsage: true });
    const errand = await new Promise<Errand>((resolve) => process.once('message', resolve));
    // A copy keeps the log of the database from being folded back, and should end; looking through may take its time.
    if (errand.does === 'examine') setPriority(constants.priority.PRIORITY_LOW);
    process.send?.(outcomeOf(errand));
    process.disconnect?.();
  });
}

function outcomeOf(errand: Errand): Told {
  try {
    return { answer: runErrand(errand) };
  } catch (error) {
    if (error instanceof Refusal) return { refusal: error.message };
    throw error;
  }
}

const LOOK_MS = 100;

/** Has errands done by a process each, which ends with the first signal. `onBytes` is told how far a copy is. */
export function openArchiver(onBytes: (done: number) => void): Archiver {
  const stop = signalled('once');

  async function run<T>(errand: Errand): Promise<T> {
    const told = Promise.withResolvers<Told>();
    const child = Bun.spawn([...besideCommand(ARCHIVER_COMMAND)], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: {},
      ipc: (message: Told) => told.resolve(message),
      onExit: () =>
        told.resolve({ refusal: 'the process that was to do it has ended; see what it said above' }),
    });
    void stop.then(() => {
      told.resolve({ refusal: 'interrupted: nothing was changed' });
      child.kill('SIGKILL');
    });
    child.send(errand);
    const outcome = await told.promise;
    await child.exited;
    if ('refusal' in outcome) throw new Refusal(outcome.refusal);
    return outcome.answer as T;
  }

  return {
    async copy(from, to) {
      const timer = setInterval(() => onBytes(sizeOf(to)), LOOK_MS);
      try {
        await run({ does: 'copy', from, to });
        onBytes(sizeOf(to));
      } finally {
        clearInterval(timer);
      }
    },
    examine: (path, called, programVersion) => run({ does: 'examine', path, called, programVersion }),
  };
}

/** 0 for a file that is not there yet. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
