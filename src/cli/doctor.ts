import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Command } from 'commander';
import { authChecks } from '../auth/inspection.ts';
import {
  masterKeySource,
  SETTINGS,
  type SettingName,
  type SettingOrigin,
  type Settings,
} from '../config/parse.ts';
import {
  type Check,
  examine,
  type Finding,
  isHealthy,
  type Report,
  recordChecks,
  type Sheet,
} from '../doctor/inspection.ts';
import { Refusal } from '../domain/fault.ts';
import { UNICODE_VERSION } from '../domain/text/folding.ts';
import { systemClock } from '../platform/clock.ts';
import { EXIT } from '../platform/exit.ts';
import { VERSION } from '../platform/version.ts';
import { givenKeyring, inspect } from '../service/open_database.ts';
import { fileOf } from '../store/open.ts';
import { addSettings, type CliContext as Desk } from './context.ts';

/** `doctor`: checks an installation. It reports and repairs nothing. */
export function addDoctor(program: Command, desk: Desk, end: (code: number) => void): void {
  addSettings(program.command('doctor'), Object.keys(SETTINGS) as SettingName[])
    .description('check settings, files and database, and report problems; changes nothing')
    .option('--json', 'write JSON')
    .action(async ({ json }: { json?: true }, command: Command) => {
      const settings = desk.settingsOf(command);
      const origins = desk.originsOf(command);
      const reports: Report[] = [];
      for await (const report of examined(settings, origins)) {
        reports.push(report);
        if (!json) tell(report);
      }
      const ill = reports.filter((report) => !isHealthy(report)).length;
      if (json) console.log(JSON.stringify({ healthy: ill === 0, checks: reports }, null, 2));
      else
        console.log(
          ill === 0
            ? 'healthy'
            : `not healthy: ${ill} of ${reports.length} checks reported problems, see above`,
        );
      end(ill === 0 ? EXIT.done : EXIT.failed);
    });
}

async function* examined(settings: Settings, origins: readonly SettingOrigin[]): AsyncGenerator<Report> {
  yield examine({ name: 'settings', run: (sheet) => tellSettings(origins, sheet) });
  yield examine({ name: 'files', run: (sheet) => checkFiles(settings, sheet) });
  yield examine({ name: 'leftovers', run: (sheet) => checkLeftovers(settings, sheet) });
  const opened = await open(settings);
  const program = `authrealm ${VERSION}, Bun ${Bun.version}, Unicode ${UNICODE_VERSION}`;
  yield examine({
    name: 'program',
    async run(sheet) {
      sheet.fact(program);
      sheet.fact(await opened.database().engine());
    },
  });
  for (const check of checksOf(settings, opened.database)) yield examine(check);
  await opened.close();
}

type Database = Awaited<ReturnType<typeof inspect>>;

/** If the database cannot be opened, only the checks that use it fail. */
async function open(
  settings: Settings,
): Promise<Pick<Database, 'close'> & { readonly database: () => Database }> {
  try {
    const database = await inspect(settings);
    return { database: () => database, close: database.close };
  } catch (error) {
    return {
      database: () => {
        throw error;
      },
      close: () => undefined,
    };
  }
}

function checksOf(settings: Settings, database: () => Database): readonly Check[] {
  const access = authChecks({
    store: () => database().accessOf(),
    keyring: () => givenKeyring(settings, systemClock),
    unknownRealms: () => database().unknownRealms(),
    clock: systemClock,
  });
  return [...access, ...recordChecks(database)];
}

/** Every setting with its value and source. */
function tellSettings(origins: readonly SettingOrigin[], sheet: Sheet): void {
  for (const { env, value, from } of origins) sheet.fact(`${env} = ${value} (${from})`);
}

const OTHERS_MAY_READ = 0o044;
const OTHERS_MAY_WRITE = 0o022;

/** Sizes and modes of the database files, the master key, copies of the database, and password files. */
function checkFiles(settings: Settings, sheet: Sheet): void {
  const path = fileOf(settings.database);
  for (const file of filesOf(settings)) {
    const { size, mode } = statSync(file);
    const told = (mode & 0o777).toString(8).padStart(4, '0');
    sheet.fact(`${file}: ${size} bytes, mode ${told}`);
    const verbs = [mode & OTHERS_MAY_READ && 'read', mode & OTHERS_MAY_WRITE && 'write'].filter(Boolean);
    if (verbs.length > 0) {
      sheet.find({
        says: `${file} has mode ${told}, so other users can ${verbs.join(' and ')} it: run chmod 600`,
      });
    }
  }
  if (path !== undefined && !existsSync(path)) throw new Refusal(`database ${path} does not exist`);
  const key = masterKeySource(settings);
  if ('path' in key && !existsSync(key.path))
    sheet.find({ says: `the master key file ${key.path} is missing` });
}

function filesOf(settings: Settings): readonly string[] {
  const key = masterKeySource(settings);
  const { databasePasswordFile, migrateDatabasePasswordFile } = settings;
  const passwords = [databasePasswordFile, migrateDatabasePasswordFile].filter((path) => path !== undefined);
  const named = ['path' in key ? [key.path] : [], passwords].flat();
  return [...new Set([...databaseFiles(fileOf(settings.database)), ...named])].filter((file) =>
    existsSync(file),
  );
}

function databaseFiles(path: string | undefined): readonly string[] {
  if (path === undefined) return [];
  return besides(path)
    .filter((name) =>
      /^(-wal|-shm|\.key|\.key\.old-.*|\.schema-[\d.]+|\.rescued|\.replaced-[^-]+)?$/.test(rest(name, path)),
    )
    .map((name) => join(dirname(path), name));
}

/** Names of files next to the database whose names begin with its own. */
function besides(path: string): readonly string[] {
  const folder = dirname(path);
  return existsSync(folder)
    ? readdirSync(folder)
        .sort()
        .filter((name) => name.startsWith(basename(path)))
    : [];
}

function rest(name: string, path: string): string {
  return name.slice(basename(path).length);
}

/** Unfinished key files and copies. */
const LEFTOVER = /\.partial(-journal)?$|\.key\.(next-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const REHEARSAL = /^\.authrealm-/;

/** Temporary files that killed commands left next to the database. */
function checkLeftovers(settings: Settings, sheet: Sheet): void {
  const path = fileOf(settings.database);
  if (path === undefined) return;
  const folder = dirname(path);
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    const isOurs = name.startsWith(basename(path)) ? LEFTOVER.test(name) : REHEARSAL.test(name);
    if (!isOurs) continue;
    sheet.find({
      says: `${join(folder, name)} is left over from a killed command: remove it unless a command is running now`,
    });
  }
}

function tell({ check, facts, findings, total, notes, notesTotal, unchecked }: Report): void {
  const state = unchecked !== undefined ? 'could not be checked' : total === 0 ? 'ok' : `${total} found`;
  console.log(`${check}: ${state}`);
  for (const fact of facts) console.log(`  ${fact}`);
  for (const finding of findings) console.log(`  ! ${written(finding)}`);
  if (total > findings.length) console.log(`  ! and ${total - findings.length} more`);
  for (const note of notes) console.log(`  - ${written(note)}`);
  if (notesTotal > notes.length) console.log(`  - and ${notesTotal - notes.length} more`);
  if (unchecked !== undefined) console.log(`  ! ${unchecked}`);
}

function written({ says, table, realm, ids }: Finding): string {
  const place = [table, realm && `realm ${realm}`, ...(ids ?? [])].filter((part) => part !== undefined);
  return place.length === 0 ? says : `${says} (${place.join(', ')})`;
}
