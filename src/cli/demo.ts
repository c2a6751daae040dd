import type { Command } from 'commander';
import { addSettings, type CliContext } from './context.ts';

/** `demo`: the complete service on a temporary database. */
export function addDemo(program: Command, context: CliContext): void {
  addSettings(program.command('demo'), ['port'])
    .description(
      'serve two small realms from a temporary database, perform two lookups, and offer the console',
    )
    .option('--once', 'exit after the lookups')
    .action(async ({ once }: { once?: true }, command: Command) => {
      const { port } = context.flagsOf(command);
      const { runDemo: demonstrate } = await import('./demo_service.ts');
      await demonstrate(port ?? '0', once === true);
    });
}
