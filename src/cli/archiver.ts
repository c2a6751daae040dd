import { statSync } from 'node:fs';
import { besideCommand } from '../beside.ts';
import { Refusal } from '../domain/fault.ts';
import type { Told } from '../roles/archiver.ts';
import type { Archiver, Errand } from '../store/backups/archiver.ts';
import { signalled } from './signals.ts';

const LOOK_MS = 100;

/** Has errands done by a process each, which ends with the first signal. `onBytes` is told how far a copy is. */
export function openArchiver(onBytes: (done: number) => void): Archiver {
  const stop = signalled('once');

  async function run<T>(errand: Errand): Promise<T> {
    const told = Promise.withResolvers<Told>();
    const child = Bun.spawn([...besideCommand('archiver')], {
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
