import { statSync } from 'node:fs';
import { Refusal } from '../domain/fault.ts';
import { receiveSignal } from '../platform/signals.ts';
import type { Archiver, ArchiverTask } from '../store/backups/archiver.ts';
import { workerCommand } from '../workers/command.ts';
import { startWorkerProcess } from '../workers/worker_process.ts';

const PROGRESS_MS = 100;

/** Runs each task in its own worker process, which the first signal kills. `onBytes` receives the bytes copied so far. */
export function openArchiver(onBytes: (done: number) => void): Archiver {
  const stop = receiveSignal('once');

  async function run<T>(task: ArchiverTask): Promise<T> {
    const worker = startWorkerProcess({ command: workerCommand('archiver') }, {});
    const interrupted = stop.then(() => {
      throw new Refusal('interrupted; nothing was changed');
    });
    const exited = worker.exited.then((code) => {
      throw new Refusal(
        `a worker exited with code ${code} before it finished its task; see its output above`,
      );
    });
    try {
      return await Promise.race([worker.request<T>(task), interrupted, exited]);
    } finally {
      worker.kill('SIGKILL');
      await worker.exited;
    }
  }

  return {
    async copy(from, to) {
      const timer = setInterval(() => onBytes(sizeOf(to)), PROGRESS_MS);
      try {
        await run({ kind: 'copy', from, to });
        onBytes(sizeOf(to));
      } finally {
        clearInterval(timer);
      }
    },
    verify: (path, label, programVersion) => run({ kind: 'verify', path, label, programVersion }),
  };
}

/** 0 for a file that does not exist yet. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
