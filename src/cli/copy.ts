import type { Command } from 'commander';
import { databaseContradictions, disclosure, SETTINGS } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import { systemClock } from '../platform/clock.ts';
import { receiveSignal } from '../platform/signals.ts';
import { printLine, standardStreams } from '../platform/standard_streams.ts';
import { VERSION } from '../platform/version.ts';
import type { CopyRun, TableComparison } from '../store/copying/open.ts';
import { type DatabaseAddress, isInMemory } from '../store/open.ts';
import { assertConfirmed, type ConfirmationOptions } from './confirmation.ts';
import { openProgress } from './progress.ts';

interface CopyOptions extends ConfirmationOptions {
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
    .option('--yes', 'do not ask for confirmation where a copy into the target was interrupted')
    .action(async (options: CopyOptions) => {
      const move = { from: addressOf('from', options), to: addressOf('to', options) };
      const { copyDatabase, hasEqualDigests } = await import('../store/copying/open.ts');
      const watch = openWatch();
      const release = { version: VERSION, clock: systemClock };
      const confirm = () =>
        assertConfirmed(options, 'removes rows from the target that the source does not have', 'copy');
      const { tables, added, removed } = await copyDatabase(move, release, { ...watch, confirm });
      printLine(`${'table'.padEnd(NAME_WIDTH)}${'rows'.padStart(COUNT_WIDTH)}  checksum`);
      for (const table of tables) printTable(table, hasEqualDigests(table));
      const differing = tables.filter((table) => !hasEqualDigests(table)).map(({ table }) => table);
      if (differing.length > 0) {
        throw new Refusal(
          `source and target differ in ${differing.join(', ')}: another program changed the target. Stop that program ` +
            'and run the same command again',
        );
      }
      printLine(`source and target are equal; ${added} rows added, ${removed} removed`);
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
    ...disclosure(side, address),
    ...databaseContradictions({ database: address, databasePasswordFile: passwordFile }),
  ];
  if (problems.length > 0) throw refusal(problems.join('\n'));
  return address.engine === 'postgres' ? { ...address, passwordFile } : address;
}

/** Shows the progress of each stage, and stops the copy at the first signal. */
function openWatch(): Pick<CopyRun, 'signal' | 'onStage'> {
  const stop = new AbortController();
  void receiveSignal().then(() => stop.abort());
  return {
    signal: stop.signal,
    onStage(stage, rows) {
      printLine(`${stage} ${rows} rows`);
      const show = openProgress(systemClock, standardStreams().stdout);
      let done = 0;
      return (more) => {
        done += more;
        show(done);
      };
    },
  };
}

const NAME_WIDTH = 22;
const COUNT_WIDTH = 12;

function printTable({ table, source, target }: TableComparison, isSame: boolean): void {
  const sides = isSame ? [source] : [source, target];
  for (const { rows, digest } of sides) {
    printLine(`${table.padEnd(NAME_WIDTH)}${String(rows).padStart(COUNT_WIDTH)}  ${digest}`);
  }
}
