import type { Command } from 'commander';
import type { SigningKey } from '../access/port.ts';
import { type KeySet, keySetAt, rotateSigningKey, withdrawSigningKey } from '../access/signing.ts';
import { systemAmbient } from '../ambient.ts';
import { openVault } from '../app.ts';
import { Refusal } from '../domain/fault.ts';
import { addDatabaseSettings, type Desk } from './cli.ts';

/** `keys`: the keys that sign access tokens. */
export function addKeyCommands(program: Command, desk: Desk): void {
  const keys = program.command('keys').description('the keys that sign access tokens');

  addDatabaseSettings(keys.command('list'))
    .description('list the signing keys and what each one does')
    .action(async (_options, command: Command) => {
      const { engine } = await openVault(desk.settingsOf(command), systemAmbient);
      const stored = (await engine.access.table(undefined))?.signingKeys ?? [];
      for (const key of stored) console.log(lineOf(key, keySetAt(stored, systemAmbient.now())));
      engine.close();
    });

  addDatabaseSettings(keys.command('rotate'))
    .description('add a key that takes over once every cached key set has seen it')
    .action(async (_options, command: Command) => {
      const { engine, keyring } = await openVault(desk.settingsOf(command), systemAmbient);
      const { kid, signsFrom } = await rotateSigningKey(engine.access, keyring, systemAmbient);
      console.log(`${kid} signs from ${new Date(signsFrom).toISOString()}`);
      engine.close();
    });

  addDatabaseSettings(keys.command('withdraw').argument('<kid>', 'the key to take back'))
    .description('refuse every token this key signed, within a second; a new key signs from now on')
    .action(async (kid: string, _options, command: Command) => {
      const { engine, keyring } = await openVault(desk.settingsOf(command), systemAmbient);
      const isDone = await withdrawSigningKey(kid, engine.access, keyring, systemAmbient);
      engine.close();
      if (!isDone)
        throw new Refusal(`there is no signing key ${kid} in use: authrealm keys list names them all`);
      console.log(`${kid} is withdrawn`);
    });
}

/** One key and what it does now. */
function lineOf(
  { kid, createdAt, signsFrom, withdrawnAt }: SigningKey,
  { signer, accepted }: KeySet,
): string {
  const made = `made ${new Date(createdAt).toISOString()}`;
  if (withdrawnAt !== undefined) return `${kid}  withdrawn ${new Date(withdrawnAt).toISOString()}  ${made}`;
  if (kid === signer?.kid) return `${kid}  signs  ${made}`;
  if (!accepted.has(kid)) return `${kid}  retired  ${made}`;
  const isNext = signsFrom > (signer?.signsFrom ?? 0);
  return `${kid}  ${isNext ? `signs from ${new Date(signsFrom).toISOString()}` : 'accepted'}  ${made}`;
}
