import type { Command } from 'commander';
import { HASHER_COMMAND, serveHasher } from '../passwords/hasher.ts';

/** The hidden command of the process that hashes passwords beside a service. */
export function addHasher(program: Command): void {
  program.command(HASHER_COMMAND, { hidden: true }).action(serveHasher);
}
