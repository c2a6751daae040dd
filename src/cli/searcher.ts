import type { Command } from 'commander';
import { SEARCHER_COMMAND, type SearchQuestion, searchFile } from '../app.ts';
import { serveParent } from '../children.ts';

/** The hidden command of a process that looks for texts in a file. */
export function addSearcher(program: Command): void {
  program.command(SEARCHER_COMMAND, { hidden: true }).action(() =>
    serveParent((asked) => {
      const { path, texts } = asked as SearchQuestion;
      return searchFile(path, texts);
    }),
  );
}
