import type { Command } from 'commander';
import { databaseContradictions, passwordOnCommandLine, SETTINGS } from '../app/config/parse.ts';
import { Refusal } from '../model/fault.ts';
import { VERSION } from '../model/version.ts';
import { systemClock } from '../ops/process/clock.ts';
import { printLine, standardStreams } from '../ops/process/standard_streams.ts';
import { type DatabaseAddress, isInMemory } from '../ops/store/open.ts';
import { writeOut } from './output.ts';
import { openProgress } from './progress.ts';
import { openTable } from './table.ts';

interface CopyOptions {
  readonly from: string;
  readonly fromPasswordFile?: string;
  readonly to: string;
  readonly toPasswordFile?: string;
}

/** `copy`: copies an installation into another database, of the same or the other engine. */
export function addCopy(program: Command): void {
  program
    .command('copy')
    .description('copy the whole database into an empty one of either engine, and compare both')
    .requiredOption('--from <URL>', `source database: ${SETTINGS.database.expects}`)
    .option('--from-password-file <FILE>', 'file with the password of the role in --from')
    .requiredOption('--to <URL>', 'target database: an empty one')
    .option('--to-password-file <FILE>', 'file with the password of the role in --to')
    .action(async (options: CopyOptions) => {
      const move = { from: addressOf('from', options), to: addressOf('to', options) };
      const { copyDatabase } = await import('../ops/store/copying/copy.ts');
      const tables = await copyDatabase(move, { version: VERSION, clock: systemClock }, (step) => {
        printLine(step);
        const show = openProgress(systemClock, standardStreams().stdout);
        let done = 0;
        return (rows) => {
          done += rows;
          show(done);
        };
      });
      const shown = openTable(['table', 'rows', 'digest'], writeOut);
      for (const each of tables) await shown.add({ ...each });
      await shown.end();
      printLine(`source and target are equal: ${tables.reduce((sum, { rows }) => sum + rows, 0)} rows`);
      printLine(
        'the target does not contain the master key: start the service with the key of the source and --master-key-file',
      );
    });
}

/** The address of source or target. Its URL may contain a password, so no message repeats any part of it. */
function addressOf(side: 'from' | 'to', options: CopyOptions): DatabaseAddress {
  const { parse, expectsFor, expects } = SETTINGS.database;
  const url = options[side];
  const passwordFile = options[`${side}PasswordFile`];
  const refusal = (message: string) =>
    new Refusal(message.replaceAll('--database', `--${side}`), { isUsage: true });
  const address = parse(url);
  if (!address) throw refusal(`--${side} must be ${expectsFor?.(url) ?? expects}`);
  if (isInMemory(address))
    throw refusal(`--${side}: an in-memory database ends with its process; use a file`);
  const problems = [
    ...passwordOnCommandLine(side, address),
    ...databaseContradictions({ database: address, databasePasswordFile: passwordFile }),
  ];
  if (problems.length > 0) throw refusal(problems.join('\n'));
  return address.engine === 'postgres' ? { ...address, passwordFile } : address;
}
