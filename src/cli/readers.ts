import type { Command } from 'commander';
import { openReader, READER_COMMAND } from '../app.ts';
import { serveParent } from '../children.ts';
import { Refusal } from '../domain/fault.ts';
import type { CountQuestion, ListQuestion } from '../store/open.ts';
import { addSettings, type Desk } from './cli.ts';

/** The hidden command of a process that reads lists and counts beside a service. */
export function addReader(program: Command, desk: Desk): void {
  addSettings(program.command(READER_COMMAND, { hidden: true }), ['database']).action(
    async (_options, command: Command) => {
      const { database } = desk.settingsOf(command);
      if (database.engine !== 'sqlite') throw new Refusal('only a SQLite file is read beside its service');
      const reader = await openReader(database);
      await serveParent((asked) => {
        const question = asked as ListQuestion | CountQuestion;
        return 'listing' in question ? reader.answer(question) : reader.count(question);
      });
      reader.close();
    },
  );
}
