import type { Command } from 'commander';
import { systemAmbient } from '../ambient.ts';
import { databaseContradictions, disclosure, SETTINGS } from '../config.ts';
import { Refusal } from '../domain/fault.ts';
import type { Compared, CopyWatch } from '../store/copying/open.ts';
import { type DatabaseAddress, isInMemory } from '../store/open.ts';
import { VERSION } from '../version.ts';
import { openProgress, type Progress } from './progress.ts';
import { signalled } from './signals.ts';

interface CopyOptions {
  readonly from: string;
  readonly fromPasswordFile?: string;
  readonly to: string;
  readonly toPasswordFile?: string;
}

/** `copy`: makes another database hold what this one does, whatever the engines. */
export function addCopy(program: Command, argv: readonly string[]): void {
  program
    .command('copy')
    .description('copy everything into another database, or bring an earlier copy up to date; then compare')
    .requiredOption('--from <URL>', `the database that is read: ${SETTINGS.database.expects}`)
    .option('--from-password-file <FILE>', 'file with the password of the role that --from names')
    .requiredOption('--to <URL>', 'the database that is written: empty, or an earlier copy of the same one')
    .option('--to-password-file <FILE>', 'file with the password of the role that --to names')
    .action(async (options: CopyOptions) => {
      const move = { from: addressOf('from', options, argv), to: addressOf('to', options, argv) };
      const { copyDatabase, isSame } = await import('../store/copying/open.ts');
      const { watch, end } = openWatch();
      const release = { version: VERSION, ambient: systemAmbient };
      const { tables, added, removed } = await copyDatabase(move, release, watch).finally(end);
      console.log(`${'table'.padEnd(NAME_WIDTH)}${'rows'.padStart(COUNT_WIDTH)}  checksum`);
      for (const table of tables) tellTable(table, isSame(table));
      const differing = tables.filter((table) => !isSame(table)).map(({ table }) => table);
      if (differing.length > 0) {
        throw new Refusal(
          `source and target differ in ${differing.join(', ')}: somebody wrote to the target meanwhile. Stop who does, ` +
            'and run the same command again',
        );
      }
      console.log(`equal; ${added} rows were added and ${removed} removed`);
      console.log(
        'the target needs the master key of the source, which is not in it: give it by --master-key-file',
      );
    });
}

/** The database of a side. Its URL may hold a password: nothing of it is repeated. */
function addressOf(side: 'from' | 'to', options: CopyOptions, argv: readonly string[]): DatabaseAddress {
  const { parse, complaint, expects } = SETTINGS.database;
  const url = options[side];
  const passwordFile = options[`${side}PasswordFile`];
  const refusal = (says: string) =>
    new Refusal(says.replaceAll('--database', `--${side}`), { isUsage: true });
  const address = parse(url);
  if (!address) throw refusal(`--${side} must be ${complaint?.(url) ?? expects}`);
  if (isInMemory(address)) throw refusal(`--${side}: a database in memory ends with its process`);
  const isOnCommandLine = argv.some((word) => word === url || word === `--${side}=${url}`);
  const complaints = [
    ...(isOnCommandLine ? disclosure(side, `AUTHREALM_COPY_${side.toUpperCase()}`, address) : []),
    ...databaseContradictions({ database: address, databasePasswordFile: passwordFile }),
  ];
  if (complaints.length > 0) throw refusal(complaints.join('\n'));
  return address.engine === 'postgres' ? { ...address, passwordFile } : address;
}

/** Shows how far each stage is, and ends the copy with the first signal. */
function openWatch(): { readonly watch: CopyWatch; readonly end: () => void } {
  const stop = new AbortController();
  void signalled('once').then(() => stop.abort());
  let progress: Progress | undefined;
  return {
    watch: {
      signal: stop.signal,
      onStage(stage, rows) {
        progress?.stop();
        console.log(`${stage} ${rows} rows`);
        progress = openProgress(rows, systemAmbient, process.stdout);
        const shown = progress;
        let done = 0;
        return (more) => {
          done += more;
          shown.show(done, done);
        };
      },
    },
    end: () => progress?.stop(),
  };
}

const NAME_WIDTH = 22;
const COUNT_WIDTH = 12;

function tellTable({ table, source, target }: Compared, isSame: boolean): void {
  const sides = isSame ? [source] : [source, target];
  for (const { rows, digest } of sides) {
    console.log(`${table.padEnd(NAME_WIDTH)}${String(rows).padStart(COUNT_WIDTH)}  ${digest}`);
  }
}
