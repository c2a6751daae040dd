import { expect } from 'bun:test';
import { findPort } from './daemons.ts';
import { type Environment, runCommand, startCommand } from './processes.ts';
import { freshFolder } from './service.ts';

/** A command that a shell runs in a folder. */
export function inFolder(folder: string, ...command: readonly string[]): readonly string[] {
  return ['/bin/sh', '-c', 'cd "$0" && exec "$@"', folder, ...command];
}

/** What `init` printed, and the record that its commands led to. */
export interface FirstMinutes {
  readonly serve: string;
  readonly add: string;
  readonly record: { readonly username: string };
}

/** Runs `init` in a folder, and pastes the commands that it prints into shells of another folder, up to a lookup. */
export async function runFirstMinutes(
  init: readonly string[],
  folder = freshFolder(),
  environment: Environment = {},
): Promise<FirstMinutes> {
  const created = await runCommand(inFolder(folder, ...init, '--port', String(findPort())), environment);
  expect([created.code, created.stderr]).toEqual([0, '']);
  const [, serve = '', add = '', token = '', lookup = ''] = created.stdout
    .split(/^\d\. .*:$/m)
    .map((part) => part.trim());
  const elsewhere = freshFolder();
  const service = startCommand(inFolder(elsewhere, 'sh', '-c', `exec ${serve}`), environment);
  await service.line(/^listening on /);
  const pasted = `${add}\n${token}\n${lookup} -sf\n`;
  const shell = await runCommand(inFolder(elsewhere, 'sh', '-e'), environment, pasted);
  expect([shell.code, shell.stderr]).toEqual([0, '']);
  expect(await service.stop()).toBe(0);
  const { data } = JSON.parse(shell.stdout.slice(shell.stdout.indexOf('{"data"')));
  return { serve, add, record: data };
}
