import type { Command } from 'commander';
import { addSettings, type CliContext } from './context.ts';

/** `demo`: the whole service on a database that ends with it. */
export function addDemo(program: Command, context: CliContext): void {
  addSettings(program.command('demo'), ['port'])
    .description(
      'serve two small realms from a temporary database, look two records up, and open the console',
    )
    .option('--once', 'end after the lookups')
    .action(async ({ once }: { once?: true }, command: Command) => {
      const { port } = context.flagsOf(command);
      const { demonstrate } = await import('./demonstration.ts');
      await demonstrate(port ?? '0', once === true);
    });
}
