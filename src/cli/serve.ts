import type { Command } from 'commander';
import { SETTINGS, type SettingName } from '../app/config/parse.ts';
import { addSettings, type CliContext } from './context.ts';

/** `serve`: runs the service until a signal. Its modules are imported here, so that other commands do not load them. */
export function addServe(program: Command, context: CliContext): void {
  const names = Object.keys(SETTINGS) as SettingName[];
  addSettings(program.command('serve'), names)
    .description('serve the API until SIGTERM, SIGINT or SIGQUIT')
    .action(async (_options, command: Command) => {
      const settings = context.listeningSettingsOf(command);
      const { serveUntilSignal } = await import('./serving.ts');
      await serveUntilSignal(settings, context.flagsOf(command));
    });
  addSettings(program.command('worker', { hidden: true }), names).action(
    async (_options, command: Command) => {
      const settings = context.listeningSettingsOf(command);
      const { serveForParent } = await import('./serving.ts');
      await serveForParent(settings);
    },
  );
}
