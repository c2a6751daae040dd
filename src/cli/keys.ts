import type { Command } from 'commander';
import { keySetAt, rotateSigningKey, withdrawSigningKey } from '../access/signing.ts';
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
      const { signer, accepted } = keySetAt(stored, systemAmbient.now());
      for (const { kid, createdAt, signsFrom, withdrawnAt } of stored) {
        const role = kid === signer?.kid ? 'signs' : accepted.has(kid) ? 'accepted' : 'retired';
        const state = withdrawnAt === undefined ? role : 'withdrawn';
        const isWaiting = state === 'accepted' && signsFrom > systemAmbient.now();
        const from = isWaiting ? ` from ${new Date(signsFrom).toISOString()}` : '';
        console.log(
          `${kid}  ${isWaiting ? 'signs' : state}${from}  made ${new Date(createdAt).toISOString()}`,
        );
      }
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
