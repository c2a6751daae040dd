import { Refusal } from '../domain/fault.ts';
import { receiveSignal } from '../platform/signals.ts';
import type { Archiver, ArchiverTask } from '../store/backups/archiver.ts';
import { workerCommand } from '../workers/command.ts';
import { startWorkerProcess } from '../workers/worker_process.ts';

/** Runs each task in its own worker process, which the first signal kills. */
export function openArchiver(): Archiver {
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

  return {
    copy: (from, to) => run({ kind: 'copy', from, to }),
    compact: (from, to) => run({ kind: 'compact', from, to }),
    verify: (path, label, programVersion) => run({ kind: 'verify', path, label, programVersion }),
  };
}
