import type { Command } from 'commander';
import { createNewKeyFile } from '../auth/keys/master_key.ts';
import type { MasterKeyChanged } from '../auth/keys/rewrap.ts';
import {
  type KeySet,
  keySetAt,
  rotateSigningKey,
  signingKeyState,
  withdrawSigningKey,
} from '../auth/keys/signing.ts';
import { Refusal } from '../domain/fault.ts';
import { systemClock } from '../platform/clock.ts';
import { printLine } from '../platform/standard_streams.ts';
import { rewrap, withDatabase } from '../service/open_database.ts';
import type { SigningKey } from '../store/auth/access.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';

/** `keys`: the keys that sign access tokens, and the master key that encrypts them. */
export function addKeyCommands(program: Command, context: CliContext): void {
  const keys = program.command('keys').description('manage signing keys and the master key');

  addDatabaseSettings(keys.command('list'))
    .description('list the signing keys and their state')
    .action((_options, command: Command) =>
      withDatabase(context.settingsOf(command), systemClock, async ({ engine }) => {
        const stored = await engine.access.signingKeys();
        for (const key of stored) printLine(lineOf(key, keySetAt(stored, systemClock.now())));
      }),
    );

  addDatabaseSettings(keys.command('rotate'))
    .description('add a signing key; it starts to sign once every cached key set contains it')
    .action((_options, command: Command) =>
      withDatabase(context.settingsOf(command), systemClock, async ({ engine, keyring }) => {
        const { kid, signsFrom } = await rotateSigningKey(engine.access, keyring, systemClock);
        printLine(`${kid} signs from ${new Date(signsFrom).toISOString()}`);
      }),
    );

  addDatabaseSettings(keys.command('withdraw').argument('<kid>', 'ID of the key to withdraw'))
    .description(
      'reject all tokens that this key signed, within a second, and end all console sessions; replaces the current signing key',
    )
    .action((kid: string, _options, command: Command) =>
      withDatabase(context.settingsOf(command), systemClock, async ({ engine, keyring }) => {
        if (!(await withdrawSigningKey(kid, engine.access, keyring, systemClock)))
          throw new Refusal(`no signing key ${kid} in use: list the keys with "authrealm keys list"`);
        printLine(`${kid} is withdrawn`);
      }),
    );

  keys
    .command('make')
    .argument('<file>', 'file to create; an existing file is never overwritten')
    .description('create a file with a new master key, for a new database or to change the key')
    .action((file: string) => {
      createNewKeyFile(file, systemClock);
      printLine(
        `created the master key ${file}: pass it to every process with --master-key-file or AUTHREALM_MASTER_KEY_FILE, and ` +
          'back it up separately from the database. Without it, the encrypted values of the database are lost',
      );
    });

  addDatabaseSettings(keys.command('rewrap'))
    .description(
      'encrypt again with --master-key-file what --previous-master-key-file encrypts, while the service runs with both; ' +
        'if interrupted, run it again',
    )
    .action(async (_options, command: Command) => {
      printRewrapResult(await rewrap(context.settingsOf(command), systemClock));
    });
}

function printRewrapResult({ keyId, ended, resealed }: MasterKeyChanged): void {
  if (ended.length === 0) {
    printLine(`key ${keyId} is already the master key; nothing was changed`);
    return;
  }
  printLine(`encrypted ${resealed} values again: the master key is now key ${keyId}`);
  printLine(
    `processes no longer need --previous-master-key-file. Older backups need key ${ended.join(', ')}: keep its file as long as them`,
  );
}

/** A key and its current state. */
function lineOf(key: SigningKey, keySet: KeySet): string {
  const { kid, createdAt, signsFrom, withdrawnAt } = key;
  const instant = (at: number) => new Date(at).toISOString();
  const found = signingKeyState(key, keySet);
  const state = found === 'next' ? `signs from ${instant(signsFrom)}` : found;
  const since = withdrawnAt === undefined ? '' : ` ${instant(withdrawnAt)}`;
  return `${kid}  ${state}${since}  created ${instant(createdAt)}`;
}
