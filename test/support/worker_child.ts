import { getPriority } from 'node:os';
import { Fault } from '../../src/domain/fault.ts';
import { serveParent } from '../../src/workers/parent.ts';

/** A child whose questions say what it is to do. */
type Question =
  | { readonly act: 'echo'; readonly value: unknown }
  | { readonly act: 'state' }
  | { readonly act: 'work'; readonly ms: number }
  | { readonly act: 'die'; readonly once?: string }
  | { readonly act: 'throw'; readonly what: 'fault' | 'bug' | 'text' | 'function'; readonly value: string };

const answers: { readonly [A in Question['act']]: (question: Question & { act: A }) => unknown } = {
  echo: ({ value }) => value,
  state: () => ({
    pid: process.pid,
    priority: getPriority(),
    environment: Object.keys(process.env),
  }),
  /** Holds the whole thread, as a long statement does. */
  work({ ms }) {
    const end = performance.now() + ms;
    while (performance.now() < end);
    return process.pid;
  },
  /** With `once`, only the child that finds no such file dies. */
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

await serveParent((question) => {
  const { act } = question as Question;
  return answers[act](question as never);
});
