import { statSync } from 'node:fs';
import { Refusal } from '../domain/fault.ts';
import { receiveSignal } from '../platform/signals.ts';
import type { Archiver, ArchiverTask } from '../store/backups/archiver.ts';
import { workerCommand } from '../workers/command.ts';
import { startWorkerProcess } from '../workers/worker_process.ts';

const PROGRESS_MS = 100;

/** Runs each task in its own worker process, which the first signal kills. `onBytes` receives the bytes written so far. */
export function openArchiver(onBytes: (done: number) => void): Archiver {
  const stop = receiveSignal();

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

  async function write(task: Extract<ArchiverTask, { to: string }>): Promise<void> {
    const timer = setInterval(() => onBytes(sizeOf(task.to)), PROGRESS_MS);
    try {
      await run(task);
      onBytes(sizeOf(task.to));
    } finally {
      clearInterval(timer);
    }
  }

  return {
    copy: (from, to) => write({ kind: 'copy', from, to }),
    compact: (from, to) => write({ kind: 'compact', from, to }),
    verify: (path, label, programVersion) => run({ kind: 'verify', path, label, programVersion }),
  };
}

/** 0 for a file that does not exist yet. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
