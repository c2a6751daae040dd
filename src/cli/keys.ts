import type { Command } from 'commander';
import { createNewKeyFile, oldKeyFile } from '../auth/keys/master_key.ts';
import { type KeySet, keySetAt, rotateSigningKey, withdrawSigningKey } from '../auth/keys/signing.ts';
import type { SigningKey } from '../auth/port.ts';
import { Refusal } from '../domain/fault.ts';
import { systemClock } from '../platform/clock.ts';
import { openDatabase, rewrap } from '../service/open_database.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';

/** `keys`: the keys that sign access tokens, and the master key that seals them. */
export function addKeyCommands(program: Command, context: CliContext): void {
  const keys = program.command('keys').description('the keys that sign access tokens, and the master key');

  addDatabaseSettings(keys.command('list'))
    .description('list the signing keys and what each one does')
    .action(async (_options, command: Command) => {
      const { engine } = await openDatabase(context.settingsOf(command), systemClock);
      const stored = await engine.access.signingKeys();
      for (const key of stored) console.log(lineOf(key, keySetAt(stored, systemClock.now())));
      await engine.close();
    });

  addDatabaseSettings(keys.command('rotate'))
    .description('add a key that takes over once every cached key set has seen it')
    .action(async (_options, command: Command) => {
      const { engine, keyring } = await openDatabase(context.settingsOf(command), systemClock);
      try {
        const { kid, signsFrom } = await rotateSigningKey(engine.access, keyring, systemClock);
        console.log(`${kid} signs from ${new Date(signsFrom).toISOString()}`);
      } finally {
        await engine.close();
      }
    });

  addDatabaseSettings(keys.command('withdraw').argument('<kid>', 'the key to take back'))
    .description('refuse every token this key signed, within a second; one that signs is replaced')
    .action(async (kid: string, _options, command: Command) => {
      const { engine, keyring } = await openDatabase(context.settingsOf(command), systemClock);
      const isDone = await withdrawSigningKey(kid, engine.access, keyring, systemClock);
      await engine.close();
      if (!isDone)
        throw new Refusal(`there is no signing key ${kid} in use: authrealm keys list names them all`);
      console.log(`${kid} is withdrawn`);
    });

  keys
    .command('make')
    .argument('<file>', 'the file to make; one that is there is never overwritten')
    .description('make a file with a new master key, for a database that has none yet')
    .action((file: string) => {
      createNewKeyFile(file, systemClock);
      console.log(
        `made the master key ${file}: give it by --master-key-file or AUTHREALM_MASTER_KEY_FILE to every process, and ` +
          'back it up apart from the database. Without it what the database keeps sealed is lost',
      );
    });

  addDatabaseSettings(keys.command('rewrap'))
    .description('change the master key while the service runs; interrupted, it is run again')
    .requiredOption('--new-master-key-file <FILE>', 'file with the new key; made where it does not exist')
    .action(async ({ newMasterKeyFile: file }: { newMasterKeyFile: string }, command: Command) => {
      tellRewrapped(await rewrap(context.settingsOf(command), file, systemClock), file);
    });
}

/** What has become of the keys, and what the operator must still do. */
function tellRewrapped(done: Awaited<ReturnType<typeof rewrap>>, file: string): void {
  const { keyId, ended, resealed, isKeyMade, source } = done;
  if (isKeyMade) console.log(`made the master key ${file}: back it up apart from the database`);
  if (ended.length === 0) {
    console.log(`the master key is key ${keyId} already; nothing was changed`);
    return;
  }
  console.log(`sealed ${resealed} values again: the master key is now key ${keyId}`);
  const path = 'path' in source ? source.path : undefined;
  if (path === undefined) {
    console.log(
      `AUTHREALM_MASTER_KEY must hold the key in ${file} from now on: restart every process with it`,
    );
    return;
  }
  console.log(`${path} holds it. Older backups need the old key, which is kept in:`);
  for (const old of ended) console.log(oldKeyFile(path, old));
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
