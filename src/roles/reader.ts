import { serveParent } from '../children.ts';
import type { CountQuestion } from '../store/counting.ts';
import type { ListQuestion } from '../store/lists.ts';
import { openReader } from '../store/sqlite/reader.ts';

/** Reads lists and counts in the file of a database until its service goes away. */
export async function serveReader(path: string): Promise<void> {
  const reader = await openReader(path);
  await serveParent((asked) => {
    const question = asked as ListQuestion | CountQuestion;
    return 'listing' in question ? reader.answer(question) : reader.count(question);
  });
  reader.close();
}
