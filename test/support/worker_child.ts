import { getPriority } from 'node:os';
import { Fault } from '../../src/model/fault.ts';
import { serveParent } from '../../src/ops/workers/parent.ts';

/** A worker whose requests name its action. */
type WorkerRequest =
  | { readonly act: 'echo'; readonly value: unknown }
  | { readonly act: 'state' }
  | { readonly act: 'work'; readonly ms: number }
  | { readonly act: 'die'; readonly once?: string }
  | { readonly act: 'throw'; readonly what: 'fault' | 'bug' | 'text' | 'function'; readonly value: string };

const handlers: { readonly [A in WorkerRequest['act']]: (request: WorkerRequest & { act: A }) => unknown } = {
  echo: ({ value }) => value,
  state: () => ({
    pid: process.pid,
    priority: getPriority(),
    environment: Object.keys(process.env),
  }),
  /** Blocks the thread, as a long statement does. */
  work({ ms }) {
    const end = performance.now() + ms;
    while (performance.now() < end);
    return process.pid;
  },
  /** With `once`, only the worker that finds no such file dies. */
  async die({ once }) {
    if (once === undefined || !(await Bun.file(once).exists())) {
      if (once !== undefined) await Bun.write(once, '');
      process.kill(process.pid, 'SIGKILL');
      await Bun.sleep(10_000);
    }
    return process.pid;
  },
  throw({ what, value }) {
    if (what === 'fault') throw new Fault('conflict', [{ field: 'username', rule: 'unique' }]);
    if (what === 'bug') throw new TypeError(`not to be told: ${value}`);
    if (what === 'text') throw value;
    return () => value;
  },
};

await serveParent((request) => {
  const { act } = request as WorkerRequest;
  return handlers[act](request as never);
});
