import type { Command } from 'commander';
import { hasStray, SEARCHER_COMMAND, type SearchQuestion } from '../app.ts';
import { serveParent } from '../children.ts';

/** The hidden command of a process that looks for texts in the file of a database. */
export function addSearcher(program: Command): void {
  program.command(SEARCHER_COMMAND, { hidden: true }).action(() =>
    serveParent((asked) => {
      const { path, texts } = asked as SearchQuestion;
      return hasStray(path, texts);
    }),
  );
}
