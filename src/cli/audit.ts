import { type Command, InvalidArgumentError } from 'commander';
import { existingCheckpointFile, type Settings } from '../app/config/parse.ts';
import { inspectLog, withDatabase } from '../app/open_database.ts';
import { type ChangeConditions, searchChanges } from '../deliver/feed/search_feed.ts';
import { CHANGE_CONDITIONS } from '../http/operations/changes.ts';
import type { Checkpoint, Restoration } from '../log/checkpoint.ts';
import type { LogKeys } from '../log/keys.ts';
import { openLogReading } from '../log/reading.ts';
import { pagesAfter } from '../log/stored_entries.ts';
import { headsOf, verifyLogs } from '../log/verify.ts';
import { Refusal } from '../model/fault.ts';
import { fileErrorText } from '../model/file_error.ts';
import { NIL_UUID, type Uuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import { createAuditEntry } from '../model/log/audit_entry.ts';
import { violatedRule } from '../model/rule.ts';
import { PROOF_REMOVED } from '../ops/doctor/key_inspection.ts';
import { verifyRecords } from '../ops/doctor/verify_records.ts';
import { systemClock } from '../ops/process/clock.ts';
import { EXIT } from '../ops/process/exit.ts';
import { printLine, printNotice } from '../ops/process/standard_streams.ts';
import { addDatabaseSettings, addSettings, type CliContext } from './context.ts';
import { parseWholeNumber } from './option_values.ts';
import { writeNewFile, writeOut } from './output.ts';
import { checkpointLines } from './restore.ts';
import { openTable, printableJson } from './table.ts';

/** `audit`: verifies and exports the audit log. */
export function addAuditCommands(program: Command, context: CliContext): void {
  const audit = program.command('audit').description('verify and export the audit log');

  addSettings(addDatabaseSettings(audit.command('verify')), ['checkpointFile'])
    .description('verify every entry of every audit log: report changed, removed, moved and inserted entries')
    .option(
      '--checkpoints <FILE>',
      'file with the audit checkpoints (default: the checkpoint file of the settings)',
    )
    .option(
      '--records',
      'also compare every record with the log, and check the MACs of clients, keys, targets and passwords',
    )
    .option(
      '--export <FILE>',
      'before that, write every entry to this new file as JSON lines, with personal data decrypted',
    )
    .option('--json', 'write JSON')
    .action(async (options: VerifyOptions, command: Command) => {
      const settings = context.settingsOf(command);
      if (options.export !== undefined) await exportLogs(settings, options.export);
      const report = await verify(settings, options);
      if (options.json) printLine(JSON.stringify(report, null, 2));
      else printReport(report);
      context.setExitCode(report.clean ? EXIT.done : EXIT.failed);
    });
}

interface VerifyOptions {
  readonly checkpoints?: string;
  readonly records?: true;
  readonly export?: string;
  readonly json?: true;
}

/** Verifies the logs on a read-only view of the database, and returns what `--json` prints. */
async function verify(settings: Settings, options: VerifyOptions) {
  const { database, logKeys } = await inspectLog(settings, systemClock);
  try {
    const path = options.checkpoints ?? existingCheckpointFile(settings);
    const { checkpoints, unsigned, restored } = await readCheckpoints(path, logKeys);
    const stores = database.accessOf();
    const verified = await verifyLogs({
      store: stores.log,
      keys: logKeys,
      checkpoints,
      now: systemClock.now,
    });
    const { findings } = verified;
    const isProven = (await stores.access.keyChecks()).length > 0;
    if (options.records) stores.useKeys(logKeys);
    const compared = { store: stores.log, records: stores.records, forgedRows: stores.forgedRows };
    const records = options.records ? await verifyRecords({ ...compared, keys: logKeys }) : null;
    const count = findings.length + unsigned.length + (records?.findings.length ?? 0) + (isProven ? 0 : 1);
    return {
      clean: count === 0,
      ...verified,
      checkpoints: checkpoints.length,
      checkpoint_file: path ?? null,
      /** Verifies the signatures of checkpoints, also outside of this program; in the form of Standard Webhooks. */
      public_key: `whpk_${logKeys.publicKey}`,
      has_key_proof: isProven,
      records,
      unsigned_lines: unsigned,
      /** The last restore of a backup over this database. */
      restored_at: instantOf(restored?.at),
      restored_taken_at: instantOf(restored?.takenAt),
      not_seen: checkpoints.length === 0 ? NOT_VERIFIABLE : null,
      findings: findings.map(({ log, seq, message: says }) => ({ log, seq: seq ?? null, says })),
    };
  } finally {
    await database.close();
  }
}

const instantOf = (at: number | undefined) => (at === undefined ? null : new Date(at).toISOString());

/** The checkpoints of a file, and the numbers of the lines that this installation did not sign. */
async function readCheckpoints(path: string | undefined, logKeys: LogKeys) {
  let checkpoints: Checkpoint[] = [];
  const unsigned: number[] = [];
  let restored: Restoration | undefined;
  const lines = path === undefined ? [] : checkpointLines(chunksOf(path), logKeys);
  for await (const { number, line } of lines) {
    if (line.kind === 'malformed' || !line.isSigned) unsigned.push(number);
    else if (line.kind === 'checkpoint') checkpoints.push(...line.logs);
    else if (line.kind === 'restore') {
      // Later ones describe the replaced database.
      const { takenAt = Number.NEGATIVE_INFINITY } = line;
      checkpoints = checkpoints.filter(({ at }) => at < takenAt - LIMITS.clockLeewayMs);
      restored = line;
    }
  }
  return { checkpoints, unsigned, restored };
}

/** Streams the file, which may be larger than a string can be. Throws Refusal if it cannot be read. */
async function* chunksOf(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* Bun.file(path).stream();
  } catch (error) {
    throw new Refusal(`--checkpoints: ${path} cannot be read: ${fileErrorText(error)}`);
  }
}

type VerifyReport = Awaited<ReturnType<typeof verify>>;

/** What the database alone cannot prove. */
const NOT_VERIFIABLE =
  'without checkpoints, verification cannot detect removed entries at the end of a log, an older copy of the database, ' +
  'or a log rewritten or trimmed by a holder of the master key';

function printReport(report: VerifyReport): void {
  const { records, findings, unsigned_lines: unsigned } = report;
  const found = [
    ...findings.map(sentenceOf),
    ...(report.has_key_proof ? [] : [PROOF_REMOVED]),
    ...unsigned.map((line) => `${report.checkpoint_file} line ${line}: not signed by this installation`),
    ...(records?.findings ?? []).map(
      ({ table, realm, id, message }) =>
        `${message} (${[table, realm && `realm ${realm}`, id].filter(Boolean).join(', ')})`,
    ),
  ];
  for (const each of found) printLine(each);
  if (records)
    printLine(`${records.covered} records compared with the log; ${records.notCovered} not covered by it`);
  const { logs, entries, checkpoints, public_key: key } = report;
  printLine(`${entries} entries of ${logs} logs, ${checkpoints} checkpoints signed by ${key}`);
  const { restored_at: at, restored_taken_at: takenAt } = report;
  const [backup, range] =
    takenAt === null
      ? ['a backup of unknown date', 'before the restore']
      : [`a backup taken at ${takenAt}`, 'between the two'];
  if (at !== null) printLine(`${backup} was restored at ${at}: checkpoints ${range} are not compared`);
  if (report.not_seen !== null) printLine(report.not_seen);
  printLine(report.clean ? 'clean' : `not clean: ${found.length} findings`);
}

function sentenceOf({ log, seq, says }: VerifyReport['findings'][number]): string {
  const name = log === NIL_UUID ? 'audit log of the installation' : `audit log of realm ${log}`;
  return `${name}${seq === null ? '' : `, entry ${seq}`}: ${says}`;
}

/** Writes every entry that exists now to a new file. The export itself is logged before the first entry is written. */
async function exportLogs(settings: Settings, file: string): Promise<void> {
  let count = 0;
  await withDatabase(settings, systemClock, ({ engine: { log: store }, logKeys }) =>
    writeNewFile(file, systemClock, async (write) => {
      const reading = openLogReading(store, logKeys);
      await store.append([createAuditEntry('log.exported', { detail: {} }, systemClock)]);
      for await (const { log, seq: end } of headsOf(store)) {
        const read = (after: number) => reading.entries(log, after, LIMITS.exportPageRecords);
        for await (const entries of pagesAfter(0, read, end)) {
          await write(entries.map((entry) => `${printableJson(entry)}\n`).join(''));
          count += entries.length;
        }
      }
    }),
  );
  printNotice(`exported ${count} entries to ${file}`);
}

interface LogOptions extends ChangeConditions {
  readonly realm?: Uuid;
  readonly limit: number;
  readonly json?: true;
}

/** `log`: the changes that `GET /v2/changes/search` finds, as entries of the log. */
export function addLog(program: Command, context: CliContext): void {
  const command = addDatabaseSettings(program.command('log')).description('list changes, newest first');
  for (const [name, schema] of Object.entries(CHANGE_CONDITIONS)) {
    const { description = '' }: { readonly description?: string } = schema.meta()?.param ?? {};
    command.option(`--${name} <VALUE>`, description.replace(/^O(.*)\.$/, 'o$1'), (raw: string) => {
      const { data, error } = schema.safeParse(raw);
      if (error) throw new InvalidArgumentError(`It ${error.issues.map(violatedRule).join(' and ')}.`);
      return data;
    });
  }
  command
    .option('--limit <N>', 'maximum number of changes', parseWholeNumber(), LIMITS.pageRecordsMax)
    .option('--json', 'write JSON lines, with the values before and after')
    .action(async ({ realm, limit, json, ...conditions }: LogOptions, by: Command) => {
      await withDatabase(context.settingsOf(by), systemClock, async ({ engine, logKeys }) => {
        const loopBudget = { turn: () => Promise.resolve() };
        const deps = { store: engine.records, feed: engine.feed, loopBudget, clock: systemClock };
        const search = { ...conditions, realms: realm && [realm], limit };
        const { changes } = await searchChanges(deps, search, false);
        const reading = openLogReading(engine.log, logKeys);
        const table = openTable(['at', 'log', 'what', 'object', 'actor', 'members'], writeOut);
        for (const change of changes) {
          const entry = await reading.entryOf(change);
          if (json && entry) await writeOut(`${printableJson(entry)}\n`);
          else if (entry) await table.add({ ...entry });
        }
        await table.end();
      });
    });
}
