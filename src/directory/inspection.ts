import { Refusal } from '../domain/fault.ts';
import { foldedKey, UNICODE_VERSION } from '../domain/folding.ts';
import type { MaybePromise } from './store.ts';

/** One thing that is not as it should be. It names tables and identifiers, never a value of a person. */
export interface Finding {
  readonly says: string;
  readonly table?: string;
  readonly realm?: string;
  readonly ids?: readonly string[];
}

/** What one check has to say. */
export interface Report {
  readonly check: string;
  readonly facts: readonly string[];
  /** At most `FINDINGS_SHOWN` of them; `total` says how many there are. */
  readonly findings: readonly Finding[];
  readonly total: number;
  /** Worth knowing, and no fault; bounded like the findings. */
  readonly notes: readonly Finding[];
  readonly notesTotal: number;
  /** Why the check could not be made, or not to its end. */
  readonly unchecked: string | undefined;
}

/** What a check writes on. */
export interface Sheet {
  fact(text: string): void;
  find(finding: Finding): void;
  note(finding: Finding): void;
}

export interface Check {
  readonly name: string;
  readonly run: (sheet: Sheet) => MaybePromise<void>;
}

export const FINDINGS_SHOWN = 20;

/** Makes a check. Whatever hinders it is told, not thrown: the other checks still have something to say. */
export async function examine({ name, run }: Check): Promise<Report> {
  const facts: string[] = [];
  const findings: Finding[] = [];
  const notes: Finding[] = [];
  let total = 0;
  let notesTotal = 0;
  let unchecked: string | undefined;
  const sheet: Sheet = {
    fact: (text) => facts.push(text),
    find: (finding) => ++total <= FINDINGS_SHOWN && findings.push(finding),
    note: (finding) => ++notesTotal <= FINDINGS_SHOWN && notes.push(finding),
  };
  try {
    await run(sheet);
  } catch (error) {
    const { message, cause } = error as Error;
    unchecked = cause instanceof Error && !(error instanceof Refusal) ? cause.message : message;
  }
  return { check: name, facts, findings, total, notes, notesTotal, unchecked };
}

export function isHealthy({ total, unchecked }: Report): boolean {
  return total === 0 && unchecked === undefined;
}

/** A row by what names it. */
export interface Placed {
  readonly table: string;
  readonly realm: string;
  readonly id: string;
}

/** A record that is being purged. */
export interface UnendedPurge extends Placed {
  readonly resource: string;
}

/** A text and the key that is stored for it; where there is no text there is no key. */
export interface KeyedText extends Placed {
  readonly column: string;
  readonly text: string | null;
  readonly key: string | null;
  readonly unicodeVersion: string;
}

/** A number that is not the checksum of the column `of` beside it. */
export interface WrongSum extends Placed {
  readonly column: string;
  readonly of: string;
}

/** Answers that are kept for a repetition of their request. */
export interface KeptAnswers {
  readonly count: number;
  /** They should have been forgotten. */
  readonly expired: number;
  /** Their realm, or the user they tell about, is not there. */
  readonly lost: number;
}

/** How often a spelling of an issuer stands in a table of a realm; `id` is one of its rows. */
export interface IssuerUse extends Placed {
  readonly issuer: string;
  readonly count: number;
}

/** The order of the changes in one realm, or under the nil UUID of the acts, beside what it should come to. */
export interface RealmOrder {
  readonly realm: string;
  readonly table: 'change' | 'act';
  /** The realm's clock; null where it has none. */
  readonly clock: number | null;
  /** The last place that was removed because it was too old; 0 where none was. */
  readonly trimmed: number;
  readonly first: number | null;
  readonly last: number | null;
  readonly count: number;
  /** For each table: changes that created a record less those that deleted one, and the records there are. */
  readonly records: readonly { readonly table: string; readonly expected: number; readonly found: number }[];
}

export interface MigrationState {
  readonly applied: readonly { readonly version: number; readonly name: string; readonly program: string }[];
  readonly known: readonly { readonly version: number; readonly name: string }[];
}

/** Two rows or more that share what only one may have. */
export interface Twins extends Placed {
  readonly other: string;
  readonly count: number;
  readonly members: string;
}

/** A realm that a client is limited to. */
export interface ClientRealm {
  readonly clientId: string;
  readonly realm: string;
}

/** What comes one by one, from an engine that answers at once or from a distant one. */
export type Rows<T> = Iterable<T> | AsyncIterable<T>;

/** What an engine tells of itself: facts, and what of it is not as it should be. */
export interface EngineState {
  readonly facts: readonly string[];
  readonly findings: readonly string[];
}

/**
 * A database as `doctor` looks at it: read only, row by row, one moment for each question. Everything may throw the
 * engine's error where the database or its schema is not what it should be.
 */
export interface Inspection {
  readonly engine: () => MaybePromise<string>;
  /** Where the database is run by others: whether what it acknowledges outlives a crash, and who stands in between. */
  readonly server: () => MaybePromise<EngineState>;
  /** Whether who serves may do what a service does, and no more. */
  readonly rights: () => MaybePromise<EngineState>;
  readonly migrations: () => MaybePromise<MigrationState>;
  /** Tables, indexes and what else of the schema is not as the migrations made it. */
  readonly schema: () => Rows<{ readonly type: string; readonly name: string; readonly is: string }>;
  /** What the engine's own check of pages, rows and indexes says. */
  readonly integrity: () => Rows<string>;
  /** Rows that name a record of `names` that is not there. */
  readonly orphans: () => Rows<Placed & { readonly names: string }>;
  readonly purges: () => Rows<UnendedPurge>;
  /** Counted from the rows themselves. */
  readonly twins: () => Rows<Twins>;
  /** Texts whose key may not be the folded one: all that are not plain, and those that look otherwise. */
  readonly keyedTexts: (unicodeVersion: string) => Rows<KeyedText>;
  readonly wrongSums: () => Rows<WrongSum>;
  /** Every spelling of an issuer, realm by realm. */
  readonly issuers: () => Rows<IssuerUse>;
  /** Links whose issuer is not spelled like that of their profile. */
  readonly foreignLinks: () => Rows<Placed>;
  readonly orders: () => Rows<RealmOrder>;
  readonly answers: (now: number) => MaybePromise<KeptAnswers>;
  /** Realms that a client is limited to and that are not there. */
  readonly lostRealms: () => Rows<ClientRealm>;
  readonly close: () => MaybePromise<void>;
}

/**
 * The checks of what is stored at this moment, the quick ones first. Asking for the inspection throws where there is
 * none.
 */
export function recordChecks(inspection: () => Inspection, now: number): readonly Check[] {
  return CHECKS.map(([name, check]) => ({ name, run: (sheet) => check(inspection(), sheet, now) }));
}

type RecordCheck = (inspection: Inspection, sheet: Sheet, now: number) => Promise<void>;

const CHECKS: readonly (readonly [name: string, check: RecordCheck])[] = [
  ['server', (inspection, sheet) => tellState(inspection.server(), sheet)],
  ['rights', (inspection, sheet) => tellState(inspection.rights(), sheet)],
  ['migrations', checkMigrations],
  ['schema', checkSchema],
  ['integrity', checkIntegrity],
  ['orphans', checkOrphans],
  ['duplicates', checkTwins],
  ['folded keys', checkKeys],
  ['checksums', checkSums],
  ['issuers', checkIssuers],
  ['changes', checkOrders],
  ['remembered answers', checkAnswers],
];

async function tellState(asked: MaybePromise<EngineState>, sheet: Sheet): Promise<void> {
  const { facts, findings } = await asked;
  for (const fact of facts) sheet.fact(fact);
  for (const says of findings) sheet.find({ says });
}

async function checkMigrations(inspection: Inspection, sheet: Sheet): Promise<void> {
  const { applied, known } = await inspection.migrations();
  const done = new Set(applied.map(({ version }) => version));
  const newest = known.at(-1)?.version ?? 0;
  for (const { version, name, program } of applied) {
    sheet.fact(`${version} ${name}, applied by ${program}`);
    if (version > newest) {
      sheet.find({
        says: `schema ${version} is newer than this program: install authrealm ${program} or newer`,
      });
    }
  }
  for (const { version, name } of known) {
    if (!done.has(version))
      sheet.find({ says: `${version} ${name} is pending: start once with --migrate auto` });
  }
}

async function checkSchema(inspection: Inspection, sheet: Sheet): Promise<void> {
  for await (const { type, name, is } of inspection.schema())
    sheet.find({ says: `${type} ${name} is ${is}` });
}

async function checkIntegrity(inspection: Inspection, sheet: Sheet): Promise<void> {
  for await (const says of inspection.integrity()) sheet.find({ says });
}

async function checkOrphans(inspection: Inspection, sheet: Sheet): Promise<void> {
  for await (const { table, realm, id, names } of inspection.orphans()) {
    sheet.find({ says: `names a record of ${names} that is not there`, table, realm, ids: [id] });
  }
  for await (const { table, realm, id, resource } of inspection.purges()) {
    const says = `a purge was begun and not ended: run authrealm purge for this ${resource}`;
    sheet.find({ says, table, realm, ids: [id] });
  }
}

async function checkTwins(inspection: Inspection, sheet: Sheet): Promise<void> {
  for await (const { table, realm, id, other, count, members } of inspection.twins()) {
    sheet.find({ says: `${count} rows share ${members}`, table, realm, ids: [id, other] });
  }
}

async function checkKeys(inspection: Inspection, sheet: Sheet): Promise<void> {
  sheet.fact(`Unicode ${UNICODE_VERSION}`);
  for await (const { table, realm, id, column, ...row } of inspection.keyedTexts(UNICODE_VERSION)) {
    if ((row.text === null ? null : foldedKey(row.text)) !== row.key) {
      const since = row.unicodeVersion === UNICODE_VERSION ? '' : `, made with Unicode ${row.unicodeVersion}`;
      sheet.find({ says: `${column}_key is not the key of ${column}${since}`, table, realm, ids: [id] });
    } else if (row.unicodeVersion !== UNICODE_VERSION) {
      const says = `${column}_key was made with Unicode ${row.unicodeVersion}, and would be the same today`;
      sheet.note({ says, table, realm, ids: [id] });
    }
  }
}

async function checkSums(inspection: Inspection, sheet: Sheet): Promise<void> {
  for await (const { table, realm, id, column, of } of inspection.wrongSums()) {
    sheet.find({ says: `${column} is not the checksum of ${of}`, table, realm, ids: [id] });
  }
}

/** None of it is a fault: nothing expired is answered, and each of them goes by itself. */
async function checkAnswers(inspection: Inspection, sheet: Sheet, now: number): Promise<void> {
  const { count, expired, lost } = await inspection.answers(now);
  sheet.fact(`${count} of them`);
  const table = 'idempotency';
  if (expired > 0) {
    const says = `${expired} have expired and go within an hour while the service runs`;
    sheet.note({ says, table });
  }
  if (lost > 0) {
    const says = `${lost} tell of a realm or user that is not there, and go when they expire`;
    sheet.note({ says, table });
  }
}

/** More spellings than this in one realm are not compared: they would not fit in a small memory. */
const SPELLINGS_MAX = 100_000;

async function checkIssuers(inspection: Inspection, sheet: Sheet): Promise<void> {
  let spellings = new Map<string, IssuerUse>();
  let realm: string | undefined;
  for await (const use of inspection.issuers()) {
    if (use.realm !== realm) spellings = new Map();
    realm = use.realm;
    const plain = plainIssuer(use.issuer);
    const known = spellings.get(plain);
    if (known === undefined) {
      if (spellings.size === SPELLINGS_MAX) {
        const says = `has more than ${SPELLINGS_MAX} issuers, which are not all compared`;
        sheet.note({ says, table: use.table, realm });
      }
      if (spellings.size <= SPELLINGS_MAX) spellings.set(plain, use);
    } else if (known.issuer !== use.issuer) sheet.find(sameIssuer(known, use));
  }
  for await (const { table, realm, id } of inspection.foreignLinks()) {
    sheet.note({ says: 'its issuer is not that of its profile', table, realm, ids: [id] });
  }
}

function sameIssuer(known: IssuerUse, use: IssuerUse): Finding {
  const told = ({ issuer, count, table }: IssuerUse) => `${issuer} (${count} in ${table})`;
  const ids = [known.id, use.id];
  const says = `differ only by final slash, host case or default port: ${told(known)} and ${told(use)}`;
  return { says, table: use.table, realm: use.realm, ids };
}

/** An issuer without what people write one way or the other: host case, default port, final slash. */
export function plainIssuer(issuer: string): string {
  const [, scheme = '', authority = '', path = ''] = /^(https?):\/\/([^/]*)(.*)$/i.exec(issuer) ?? [];
  const port = scheme.toLowerCase() === 'https' ? /:443$/ : /:80$/;
  return `${scheme.toLowerCase()}://${authority.toLowerCase().replace(port, '')}${path.replace(/\/+$/, '')}`;
}

async function checkOrders(inspection: Inspection, sheet: Sheet): Promise<void> {
  for await (const order of inspection.orders()) {
    const { realm, records } = order;
    for (const says of disorders(order)) sheet.find({ says, table: order.table, realm });
    // What was removed from the beginning told of records that are still there.
    if (order.trimmed > 0) continue;
    for (const { table, expected, found } of records) {
      if (expected === found) continue;
      sheet.find({ says: `${found} records, where the changes come to ${expected}`, table, realm });
    }
  }
}

/** A realm's changes are numbered from the first that was not removed, without a gap; its clock stands at the last. */
function disorders({ table, clock, trimmed, first, last, count }: RealmOrder): readonly string[] {
  const begin = trimmed + 1;
  const [from, to, at] = [first ?? begin, last ?? trimmed, clock ?? 0];
  const lost = to - from + 1 - count;
  const whose = table === 'act' ? 'installation' : 'realm';
  return [
    ...(at === to ? [] : [`the clock of the ${whose} is at ${at}, its last ${table} at ${to}`]),
    ...(from === begin ? [] : [`the first ${table} is ${from}, not ${begin}`]),
    ...(lost === 0 ? [] : [`${lost} ${table}s are missing in between`]),
  ];
}
