import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Command } from 'commander';
import {
  masterKeySource,
  namedFiles,
  readTls,
  SETTINGS,
  type SettingName,
  type SettingOrigin,
  type Settings,
} from '../app/config/parse.ts';
import { givenKeyring } from '../app/open_database.ts';
import { uuidText } from '../model/id.ts';
import { UNICODE_VERSION } from '../model/text/folding.ts';
import { isSafeUrl } from '../model/text/text.ts';
import { VERSION } from '../model/version.ts';
import { checkCertificate } from '../ops/doctor/certificate.ts';
import {
  type CheckFinding,
  type CheckReport,
  type CheckReporter,
  isHealthy,
  recordChecks,
  runCheck,
} from '../ops/doctor/inspection.ts';
import { authChecks } from '../ops/doctor/key_inspection.ts';
import { systemClock } from '../ops/process/clock.ts';
import { EXIT } from '../ops/process/exit.ts';
import { printLine } from '../ops/process/standard_streams.ts';
import { fileOf, inspectEngine } from '../ops/store/open.ts';
import { addSettings, type CliContext } from './context.ts';
import { readFileMode } from './file_mode.ts';

/** `doctor`: checks an installation. It reports and repairs nothing. */
export function addDoctor(program: Command, context: CliContext): void {
  addSettings(program.command('doctor'), Object.keys(SETTINGS) as SettingName[])
    .description('check settings, files and database, and report problems; changes nothing')
    .option('--json', 'write JSON')
    .action(async ({ json }: { json?: true }, command: Command) => {
      const settings = context.settingsOf(command);
      const origins = context.originsOf(command);
      const reports = await Array.fromAsync(runChecks(settings, origins));
      const unhealthy = reports.filter((report) => !isHealthy(report)).map(({ check }) => check);
      const healthy = unhealthy.length === 0;
      const verdict = `not healthy: ${unhealthy.length} of ${reports.length} checks reported problems, marked ! below: ${unhealthy.join(', ')}`;
      if (json) printLine(JSON.stringify({ healthy, checks: reports }, null, 2));
      else {
        printLine(healthy ? 'healthy' : verdict);
        reports.forEach(printReport);
      }
      context.setExitCode(healthy ? EXIT.done : EXIT.failed);
    });
}

/** Without a database, the checks of one do not run. */
async function* runChecks(
  settings: Settings,
  origins: readonly SettingOrigin[],
): AsyncGenerator<CheckReport> {
  yield runCheck({
    name: 'settings',
    run(reporter) {
      for (const { env, value, from } of origins)
        if (from !== 'default' && from !== 'not given') reporter.fact(`${env} = ${value} (${from})`);
    },
  });
  yield runCheck({ name: 'files', run: (reporter) => checkFiles(settings, reporter) });
  let opened: Awaited<ReturnType<typeof inspectEngine>> | undefined;
  yield runCheck({
    name: 'program',
    async run(reporter) {
      reporter.fact(`authrealm ${VERSION}, Bun ${Bun.version}, Unicode ${UNICODE_VERSION}`);
      opened = await inspectEngine(settings.database);
      reporter.fact(await opened.engine());
    },
  });
  if (!opened) return;
  const { accessOf: store, realmSignIns, close } = opened;
  const keyring = () => givenKeyring(settings, systemClock);
  for (const check of [...authChecks({ store, keyring, clock: systemClock }), ...recordChecks(opened)])
    yield runCheck(check);
  yield runCheck({
    name: 'sign-in',
    async run({ fact, note }) {
      const anHourAgo = systemClock.now() - 3_600_000;
      const isInsecure = settings.baseUrl !== undefined && !isSafeUrl(settings.baseUrl);
      for (const { policy, redirect_uris, issuers, signups, ...of } of await realmSignIns(anHourAgo)) {
        const realm = uuidText(of.realm);
        if (isInsecure && issuers > 0 && redirect_uris !== '[]') note({ says: INSECURE_SIGN_IN, realm });
        if (policy === 'api_only' && issuers > 1)
          note({ says: `each of ${issuers} issuers ${CLAIMS_USERS}`, realm });
        if (signups !== null) fact(`${signups} sign-ups in the last hour in realm ${realm}`);
      }
    },
  });
  await close();
}

const CLAIMS_USERS =
  'can claim any user whose e-mail address is vouched for: delete profiles whose provider does not verify addresses, or set ' +
  'duplicate_email_policy to allowed';
const INSECURE_SIGN_IN =
  'if this is the account realm, its login URLs lead nowhere, because --base-url is http and not on this machine: pass an https URL';

/** Sizes and modes of the database files and of the files that settings name, and whether the certificate can be used. */
function checkFiles(settings: Settings, reporter: CheckReporter): void {
  // The database, and what this program has next to it.
  const ending = /^(-wal|-shm|\.key|\.schema-[\d.]+|\.rescued|\.replaced-[^-]+)?$/;
  for (const file of filesNamedAfter(fileOf(settings.database), ending)) reportFile(file, true, reporter);
  for (const { flag, path, kind } of namedFiles(settings)) {
    if (existsSync(path)) reportFile(path, kind !== 'public', reporter);
    else if (kind !== 'written') reporter.find({ says: `--${flag}: ${path} does not exist` });
  }
  const key = masterKeySource(settings);
  if (key.from === 'default' && isFileMissing(key.path) && !isFileMissing(fileOf(settings.database)))
    reporter.find({ says: `the master key file ${key.path} is missing` });
  const { tlsCert, tlsKey } = settings;
  if (tlsCert === undefined || isFileMissing(tlsCert) || isFileMissing(tlsKey)) return;
  const tls = readTls(settings);
  if (tls) checkCertificate({ ...tls, path: tlsCert }, systemClock.now(), reporter);
}

const isFileMissing = (path: string | undefined) => path === undefined || !existsSync(path);

function reportFile(file: string, isSecret: boolean, reporter: CheckReporter): void {
  const { octal, isOpen } = readFileMode(file, isSecret);
  reporter.fact(`${file}: ${statSync(file).size} bytes, mode ${octal}`);
  if (!isOpen) return;
  const [may, right] = isSecret ? ['read or write', '600'] : ['write', 'go-w'];
  reporter.find({ says: `${file} has mode ${octal}, so other users can ${may} it: run chmod ${right}` });
}

/** The files in the folder of a database whose names are its own with such an ending. */
export function filesNamedAfter(database: string | undefined, ending: RegExp): readonly string[] {
  if (database === undefined || !existsSync(dirname(database))) return [];
  const own = basename(database);
  return readdirSync(dirname(database))
    .filter((name) => name.startsWith(own) && ending.test(name.slice(own.length)))
    .sort()
    .map((name) => join(dirname(database), name));
}

function printReport({ check, facts, findings, total, notes, notesTotal, unchecked }: CheckReport): void {
  const state = unchecked !== undefined ? 'could not be checked' : total === 0 ? 'ok' : `${total} found`;
  printLine(`${check}: ${state}`);
  for (const fact of facts) printLine(`  ${fact}`);
  for (const finding of findings) printLine(`  ! ${sentenceOf(finding)}`);
  if (total > findings.length) printLine(`  ! and ${total - findings.length} more`);
  for (const note of notes) printLine(`  - ${sentenceOf(note)}`);
  if (notesTotal > notes.length) printLine(`  - and ${notesTotal - notes.length} more`);
  if (unchecked !== undefined) printLine(`  ! ${unchecked}`);
}

function sentenceOf({ says, table, realm, ids }: CheckFinding): string {
  const place = [table, realm && `realm ${realm}`, ...(ids ?? [])].filter((part) => part !== undefined);
  return place.length === 0 ? says : `${says} (${place.join(', ')})`;
}
