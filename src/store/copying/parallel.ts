import { Refusal } from '../../domain/fault.ts';

/** How many pages are under way at once. */
const AT_ONCE = 4;

/**
 * Works on what comes, some of it at once. After the first trouble, or with the signal, nothing more is begun, and what
 * is under way ends first.
 */
export async function inParallel<T>(
  items: AsyncIterable<T> | Iterable<T>,
  signal: AbortSignal,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = (
    Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
  ) as AsyncIterator<T> | Iterator<T>;
  let trouble: { readonly error: unknown } | undefined;
  let asking: Promise<unknown> = Promise.resolve();

  /** One at a time asks for the next one. */
  function next(): Promise<IteratorResult<T>> {
    const asked = asking.then(() => iterator.next());
    asking = asked.catch(() => undefined);
    return asked;
  }

  async function worker(): Promise<void> {
    try {
      while (!trouble && !signal.aborted) {
        const { done, value } = await next();
        if (done) return;
        await work(value);
        // An engine that answers at once leaves no turn to signals and to other connections.
        await new Promise((resolve) => setImmediate(resolve));
      }
    } catch (error) {
      trouble ??= { error };
    }
  }

  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  if (trouble) throw trouble.error;
  if (signal.aborted) {
    throw new Refusal('the copy was interrupted: run the same command again, which goes on from there');
  }
}
