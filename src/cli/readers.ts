import type { Command } from 'commander';
import { openReader, READER_COMMAND } from '../app.ts';
import { serveParent } from '../children.ts';
import type { ListQuestion } from '../store/open.ts';
import { addSettings, type Desk } from './cli.ts';

/** The hidden command of a process that reads lists beside a service. */
export function addReader(program: Command, desk: Desk): void {
  addSettings(program.command(READER_COMMAND, { hidden: true }), ['database']).action(
    async (_options, command: Command) => {
      const reader = await openReader(desk.settingsOf(command).database);
      await serveParent((question) => reader.answer(question as ListQuestion));
      reader.close();
    },
  );
}
