import type { Command } from 'commander';
import type { LogFinding } from '../audit/chain_verifier.ts';
import { type Checkpoint, type Restoration, readLine } from '../audit/checkpoint.ts';
import { openLogReading } from '../audit/reading.ts';
import { headsOf, type VerificationResult, verifyLogs } from '../audit/verify.ts';
import { createAuditEntry } from '../domain/audit_entry.ts';
import { Refusal } from '../domain/fault.ts';
import { NIL_UUID } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { systemClock } from '../platform/clock.ts';
import { EXIT } from '../platform/exit.ts';
import { type OpenDatabase, openDatabase } from '../service/open_database.ts';
import { type Line as FileLine, linesOf } from '../transfer/line_reader.ts';
import { addDatabaseSettings, addSettings, type CliContext as Desk } from './context.ts';
import { keptCheckpoints, proveKept } from './kept.ts';
import { newFile, type Output, standardOutput } from './output.ts';
import { printableJson } from './table.ts';

const STANDARD_OUTPUT = '-';

/** `audit`: what was written and done, and whether that is the truth. */
export function addAuditCommands(program: Command, desk: Desk, end: (code: number) => void): void {
  const audit = program
    .command('audit')
    .description('what was written and done, and whether that is the truth');

  addSettings(addDatabaseSettings(audit.command('verify')), ['checkpointFile'])
    .description('look at every entry of every log: whether one was changed, removed, moved or put there')
    .option('--checkpoints <FILE>', 'what was said outside of the database; the checkpoint file unless given')
    .option('--json', 'write JSON')
    .action(async (options: { checkpoints?: string; json?: true }, command: Command) => {
      const settings = desk.settingsOf(command);
      proveKept(settings);
      const db = await openDatabase(settings, systemClock);
      try {
        const path = options.checkpoints ?? keptCheckpoints(settings);
        const { checkpoints, unsigned, restored } = await readCheckpoints(path, db);
        const findings: LogFinding[] = [];
        const verified = await verifyLogs({
          store: db.engine.log,
          keys: db.logKeys,
          checkpoints,
          now: systemClock.now,
          onFinding: (found) => findings.push(found),
        });
        const report = { path, unsigned, restored, told: checkpoints.length, verified, findings };
        if (options.json) console.log(JSON.stringify(jsonOf(report), null, 2));
        else tell(report);
        end(isClean(report) ? EXIT.done : EXIT.failed);
      } finally {
        await db.engine.close();
      }
    });

  addDatabaseSettings(audit.command('key'))
    .description('tell the public key of what is signed outside of the database, for who receives it')
    .action(async (_options, command: Command) => {
      const settings = desk.settingsOf(command);
      proveKept(settings);
      const db = await openDatabase(settings, systemClock);
      console.log(`whpk_${db.logKeys.publicKey}`);
      await db.engine.close();
    });

  addDatabaseSettings(
    audit
      .command('export')
      .argument('[file]', `a file to make, or ${STANDARD_OUTPUT} for standard output`, STANDARD_OUTPUT),
  )
    .description('write every entry of every log, one JSON object a line, personal values readable')
    .action(async (file: string, _options, command: Command) => {
      const settings = desk.settingsOf(command);
      proveKept(settings);
      const db = await openDatabase(settings, systemClock);
      const output = file === STANDARD_OUTPUT ? standardOutput() : newFile(file, systemClock);
      try {
        const entries = await exportLogs(db, output);
        output.finish();
        console.error(`exported ${entries} entries${file === STANDARD_OUTPUT ? '' : ` to ${file}`}`);
      } finally {
        output.abandon();
        await db.engine.close();
      }
    });
}

/** What a file of checkpoints says, and the numbers of the lines that this installation did not sign. */
async function readCheckpoints(path: string | undefined, { logKeys }: OpenDatabase) {
  let checkpoints: Checkpoint[] = [];
  const unsigned: number[] = [];
  let restored: Restoration | undefined;
  const decoder = new TextDecoder();
  const take = ({ number, bytes }: FileLine): void => {
    const read = bytes && readLine(decoder.decode(bytes), logKeys);
    if (!read || read.kind === 'malformed' || !read.isSigned) {
      unsigned.push(number);
      return;
    }
    if (read.kind === 'checkpoint') checkpoints.push(...read.logs);
    if (read.kind !== 'restore') return;
    checkpoints = checkpoints.filter((each) => isOfBackup(each, read));
    restored = read;
  };
  if (path !== undefined) {
    for await (const lines of linesOf(chunksOf(path))) for (const line of lines) take(line);
  }
  return { checkpoints, unsigned, restored };
}

/** A file that only grows may be larger than a text can be. Throws Refusal where it cannot be read. */
async function* chunksOf(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* Bun.file(path).stream();
  } catch (error) {
    throw new Refusal(`--checkpoints: ${(error as Error).message}`);
  }
}

/** Whether a checkpoint tells of what the backup holds: what was told since is of the database that it replaced. */
function isOfBackup({ at }: Checkpoint, { takenAt }: Restoration): boolean {
  return takenAt !== undefined && at < takenAt - LIMITS.clockLeewayMs;
}

interface Report {
  readonly path: string | undefined;
  readonly unsigned: readonly number[];
  readonly told: number;
  /** When a backup was put in the place of the database, the last time. */
  readonly restored: Restoration | undefined;
  readonly verified: VerificationResult;
  readonly findings: readonly LogFinding[];
}

/** What only somebody outside of the database can tell. */
const UNSEEN =
  'without checkpoints it cannot be seen whether an end was cut off, an older database stands in the place of a newer ' +
  'one, or who has the master key wrote a log anew or moved its beginning';

function tell(report: Report): void {
  const { path, unsigned, told, restored, verified, findings } = report;
  for (const found of findings) console.log(sentenceOf(found));
  for (const line of unsigned) console.log(`${path} line ${line}: this installation did not sign it`);
  const { logs, entries, untagged } = verified;
  console.log(`${entries} entries of ${logs} logs, ${told} checkpoints`);
  if (untagged > 0) {
    console.log(
      `${untagged} entries are not chained: an older release wrote them, or a stranger. The next start chains them`,
    );
  }
  if (restored) console.log(restorationOf(restored));
  if (told === 0) console.log(UNSEEN);
  console.log(
    isClean(report) ? 'clean' : `not clean: ${findings.length + unsigned.length + untagged} findings`,
  );
}

function restorationOf({ at, takenAt }: Restoration): string {
  const isUntold = takenAt === undefined;
  const which = isUntold ? 'a backup of an unknown time' : `a backup of ${new Date(takenAt).toISOString()}`;
  const uncompared = isUntold ? 'from before' : 'between';
  return `${which} was put in its place at ${new Date(at).toISOString()}: checkpoints ${uncompared} are not compared`;
}

function isClean({ findings, unsigned, verified }: Report): boolean {
  return findings.length === 0 && unsigned.length === 0 && verified.untagged === 0;
}

function sentenceOf({ log, seq, message: says }: LogFinding): string {
  const name = log === NIL_UUID ? 'the log of the installation' : `the log of realm ${log}`;
  return `${name}${seq === undefined ? '' : `, entry ${seq}`}: ${says}`;
}

function jsonOf(report: Report) {
  const { path, unsigned, told, restored, verified, findings } = report;
  return {
    clean: isClean(report),
    ...verified,
    checkpoints: told,
    checkpoint_file: path ?? null,
    unsigned_lines: unsigned,
    restored_at: restored ? new Date(restored.at).toISOString() : null,
    restored_taken_at: restored?.takenAt === undefined ? null : new Date(restored.takenAt).toISOString(),
    not_seen: told === 0 ? UNSEEN : null,
    findings: findings.map(({ log, seq, message: says }) => ({ log, seq: seq ?? null, says })),
  };
}

/** Writes all that stands in the logs at this moment. That it was asked for is logged before anything is told. */
async function exportLogs({ engine, logKeys }: OpenDatabase, output: Output): Promise<number> {
  const reading = openLogReading(engine.log, logKeys);
  await engine.log.append([createAuditEntry('log.exported', { detail: {} }, systemClock)]);
  let count = 0;
  for await (const { log, seq: end } of headsOf(engine.log)) {
    for (let after = 0; ; ) {
      const page = await reading.entries(log, after, LIMITS.exportPageRecords);
      const entries = page.filter(({ seq }) => seq <= end);
      if (entries.length === 0) break;
      await output.write(entries.map((entry) => `${printableJson(entry)}\n`).join(''));
      count += entries.length;
      after = entries.at(-1)?.seq ?? after;
    }
  }
  return count;
}
