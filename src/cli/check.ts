import type { Command } from 'commander';
import { EXIT } from '../platform/exit.ts';
import { printLine } from '../platform/standard_streams.ts';
import { openInputReader } from './arguments.ts';
import { addConnection, type ConnectionOptions, connectBy } from './connection.ts';
import type { CliContext } from './context.ts';
import { printable } from './table.ts';

interface CheckOptions extends ConnectionOptions {
  readonly endUserAddress?: string;
  readonly deviceFile?: string;
  readonly json?: true;
}

/** `check`: whether a password on standard input is right. */
export function addCheck(program: Command, { environmentOf, setExitCode }: CliContext): void {
  const command = addConnection(
    program
      .command('check')
      .description('check the password of a username; the password is read from standard input')
      .argument('<realm-id>')
      .argument('<password-profile-id>')
      .argument('<username>'),
  )
    .option('--end-user-address <ADDRESS>', 'IP address of the end user, which most clients must report')
    .option('--device-file <FILE>', 'file with the device token of an earlier right password of this user')
    .option('--json', 'write JSON');
  command.action(async (realm: string, profile: string, username: string, options: CheckOptions) => {
    const { directory, refusalOf } = connectBy(options, environmentOf(command));
    const read = openInputReader();
    // Editors and `echo` add a final line break that is not part of the text.
    const readLine = async (path: string) => (await read(path)).replace(/\r?\n$/, '');
    const password = await readLine('-');
    const { endUserAddress, deviceFile, json } = options;
    const device = deviceFile === undefined ? undefined : await readLine(deviceFile);
    const checked = await directory
      .checkPassword([realm, profile], { username, password }, { endUserAddress, device })
      .catch((error: unknown) => {
        throw refusalOf(error);
      });
    if (!checked.verified) setExitCode(EXIT.wrongPassword);
    if (json) printLine(JSON.stringify(checked));
    else if (checked.verified)
      printLine(`right: user ${printable(checked.userId)}\ndevice ${printable(checked.device)}`);
    else printLine('wrong');
  });
}
