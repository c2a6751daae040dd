import type { MaybePromise } from './store.ts';

/** Pages until an empty one. `read` gets the last item of the page before, undefined at first. */
export async function* pagesOf<T>(
  read: (last: T | undefined) => MaybePromise<readonly T[]>,
): AsyncGenerator<readonly T[]> {
  for (let page = await read(undefined); page.length > 0; page = await read(page.at(-1))) yield page;
}
