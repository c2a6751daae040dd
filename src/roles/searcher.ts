import type { SearchQuestion } from '../beside.ts';
import { serveParent } from '../children.ts';
import { hasStray } from '../store/sqlite/strays.ts';

/** Looks for texts in files of databases until the process that has them open goes away. */
export function serveSearcher(): Promise<void> {
  return serveParent((asked) => {
    const { path, texts } = asked as SearchQuestion;
    return hasStray(path, texts);
  });
}
