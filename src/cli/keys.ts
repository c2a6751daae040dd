import type { Command } from 'commander';
import { createNewKeyFile } from '../access/keys/master_key.ts';
import { rewrap } from '../app/open_database.ts';
import { systemClock } from '../ops/process/clock.ts';
import { printLine } from '../ops/process/standard_streams.ts';
import { EVERY_ITEM, type OperationCall, performOperation } from './admin_commands.ts';
import { addDatabaseSettings, type CliContext } from './context.ts';
import { KEY_ADVICE } from './key_file.ts';
import { printResult } from './table.ts';

/** `keys`: the keys that sign access tokens, and the master key that encrypts them. */
export function addKeyCommands(program: Command, context: CliContext): void {
  const keys = program.command('keys').description('manage signing keys and the master key');

  async function show(by: Command, call: OperationCall): Promise<void> {
    const keys = await performOperation<ShownKey | readonly ShownKey[]>(context.settingsOf(by), call);
    printResult([keys].flat().map(describe));
  }

  addDatabaseSettings(keys.command('list'))
    .description('list the signing keys and their state')
    .action((_options, by: Command) => show(by, { name: 'list-signing-keys', query: EVERY_ITEM }));

  addDatabaseSettings(keys.command('rotate'))
    .description('add a signing key; it starts to sign once every cached key set contains it')
    .action((_options, by: Command) => show(by, { name: 'create-signing-key' }));

  addDatabaseSettings(keys.command('withdraw').argument('<kid>', 'ID of the key to withdraw'))
    .description(
      'reject all tokens that this key signed, within a second, and end all console sessions; replaces the current signing key',
    )
    .action((kid: string, _options, by: Command) => {
      const missing = `no signing key ${kid}: list the keys with "authrealm keys list"`;
      return show(by, { name: 'withdraw-signing-key', params: { kid }, missing });
    });

  keys
    .command('make')
    .argument('<file>', 'file to create; an existing file is never overwritten')
    .description('create a file with a new master key, for a new database or to change the key')
    .action((file: string) => {
      createNewKeyFile(file, systemClock);
      printLine(
        `created the master key ${file}: pass it to every process with --master-key-file or AUTHREALM_MASTER_KEY_FILE, and ${KEY_ADVICE}`,
      );
    });

  addDatabaseSettings(keys.command('rewrap'))
    .description(
      'encrypt again with --master-key-file what --previous-master-key-file encrypts, while the service runs with both; ' +
        'if interrupted, run it again',
    )
    .action(async (_options, command: Command) => {
      const { keyId, ended, resealed } = await rewrap(context.settingsOf(command), systemClock);
      if (ended.length === 0) {
        printLine(`key ${keyId} is already the master key; nothing was changed`);
        return;
      }
      printLine(`encrypted ${resealed} values again: the master key is now key ${keyId}`);
      printLine(
        `processes no longer need --previous-master-key-file. Older backups need key ${ended.join(', ')}: keep its file as long as them`,
      );
    });
}

/** A signing key as the admin operations return it. */
interface ShownKey {
  readonly id: string;
  readonly type: string;
  readonly links?: object;
  readonly meta: object;
}

function describe({ id, type, links, meta, ...members }: ShownKey): object {
  return { kid: id, ...members, ...meta };
}
