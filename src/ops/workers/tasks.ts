import { Refusal } from '../../model/fault.ts';
import type { ReaderListRequest } from '../../records/store/lists/lists.ts';
import type { ReaderSearchRequest } from '../../records/store/lists/realm_search.ts';
import { EXIT, printRefusal } from '../process/exit.ts';
import type { TaskName } from './command.ts';
import { serveParent } from './parent.ts';
import type { Handle } from './protocol.ts';

/**
 * What a worker does, by the first word of its command line. Each imports what it needs and nothing else: the modules of the command
 * line take twice as long to load, and a worker may load them at the lowest priority.
 */
const TASKS: Readonly<Record<TaskName, (path: string) => Promise<(request: never) => unknown>>> = {
  hasher: async () => (await import('./hasher.ts')).hashOf,
  checker: async () => (await import('./checker.ts')).openRestingCheck(),
  /** Reads lists in the file of a database. */
  async reader(path) {
    const { openReader } = await import('../../records/store/sqlite/reader.ts');
    const reader = await openReader(path);
    return (request: ReaderListRequest | ReaderSearchRequest) =>
      'search' in request ? reader.search(request) : reader.answer(request);
  },
};

export function isTaskName(word: string): word is TaskName {
  return Object.hasOwn(TASKS, word);
}

/** Works until the parent is gone, and returns the exit code; a Refusal is printed on standard error. */
export async function runWorker(task: TaskName, path: string): Promise<number> {
  try {
    if (!process.send) throw new Refusal('this command is started by the program itself', { isUsage: true });
    await serveParent((await TASKS[task](path)) as Handle);
    return EXIT.done;
  } catch (error) {
    const { toRefusal } = await import('../../sql/refusals.ts');
    const refusal = toRefusal(error, path || undefined);
    if (!(refusal instanceof Refusal)) throw error;
    return printRefusal(refusal);
  }
}
