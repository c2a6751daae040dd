import { Refusal } from '../domain/fault.ts';
import { EXIT, printRefusal } from '../platform/exit.ts';
import type { CountRequest } from '../store/lists/count_below.ts';
import type { ReaderListRequest } from '../store/lists/lists.ts';
import type { ReaderSearchRequest } from '../store/lists/realm_search.ts';
import type { WorkerKind } from './command.ts';
import { serveParent } from './parent.ts';

/**
 * The kinds of workers, by the first word of their command line. Each imports what it needs and nothing else: the modules of
 * the command line take twice as long to load, and a worker may load them at the lowest priority.
 */
const KINDS: Readonly<Record<WorkerKind, (path: string) => Promise<void>>> = {
  /** Hashes passwords. */
  async hasher() {
    const { hashOf } = await import('./hasher.ts');
    await serveParent(hashOf);
  },
  /** Checks passwords. */
  async checker() {
    const { openRestingCheck } = await import('./checker.ts');
    await serveParent(openRestingCheck());
  },
  /** Reads lists and counts in the file of a database. */
  async reader(path: string) {
    const { openReader } = await import('../store/sqlite/reader.ts');
    const reader = await openReader(path);
    await serveParent((message) => {
      const request = message as ReaderListRequest | ReaderSearchRequest | CountRequest;
      if ('search' in request) return reader.search(request);
      return 'listing' in request ? reader.answer(request) : reader.count(request);
    });
    reader.close();
  },
};

export function isWorkerKind(word: string): word is WorkerKind {
  return Object.hasOwn(KINDS, word);
}

/** Works until the parent is gone, and returns the exit code; a Refusal is printed on standard error. */
export async function runWorker(kind: WorkerKind, path: string): Promise<number> {
  try {
    if (!process.send) throw new Refusal('this command is started by the program itself', { isUsage: true });
    await KINDS[kind](path);
    return EXIT.done;
  } catch (error) {
    const { toRefusal } = await import('../store/refusals.ts');
    const refusal = toRefusal(error, path || undefined);
    if (!(refusal instanceof Refusal)) throw error;
    return printRefusal(refusal);
  }
}
