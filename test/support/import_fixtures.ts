import { openSignerKeys } from '../../src/access/keys/signer_keys.ts';
import type { OpenDatabase } from '../../src/app/open_database.ts';
import { type StoredId, uuidText } from '../../src/model/id.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { type CsvMap, csvLines } from '../../src/ops/transfer/csv_users.ts';
import { type ImportOptions, type ImportResult, importLines } from '../../src/ops/transfer/import.ts';
import { openLineParser } from '../../src/ops/transfer/import_line.ts';
import { splitLines } from '../../src/ops/transfer/line_reader.ts';
import type { TestDatabase } from './database.ts';
import { PASSWORD_HASH } from './service.ts';

export type Json = Record<string, unknown>;

export const mintId = systemClock.mintId;
export const meta = { created_at: '2021-02-03T04:05:06.007Z', updated_at: '2022-03-04T05:06:07.890Z' };

/** The import lines of a realm: one record of each resource, parents first. */
export function realmLines() {
  const ids = {
    realm: mintId(),
    oidc: mintId(),
    passwords: mintId(),
    user: mintId(),
    link: mintId(),
    name: mintId(),
  };
  const lines = {
    realm: { type: realm.type, id: ids.realm, name: 'Shop', meta },
    oidc: {
      type: oidcProfile.type,
      id: ids.oidc,
      realm_id: ids.realm,
      name: 'Login',
      discovery_url: 'https://login.example.com/.well-known/openid-configuration',
      client_id: 'shop',
      client_secret: 'of-the-provider',
      meta: { ...meta, issuer: 'https://login.example.com/' },
    },
    passwords: {
      type: passwordProfile.type,
      id: ids.passwords,
      realm_id: ids.realm,
      name: 'Passwords',
      meta,
    },
    user: {
      type: user.type,
      id: ids.user,
      realm_id: ids.realm,
      name: 'Jane Doe',
      email: 'jane@example.com',
      meta,
    },
    link: {
      type: oidcProfileInfo.type,
      id: ids.link,
      realm_id: ids.realm,
      user_authentication_info_id: ids.user,
      subject: `subject-${ids.link}`,
      issuer: 'https://login.example.com/',
      oidc_profile_id: ids.oidc,
      meta,
    },
    name: {
      type: passwordProfileInfo.type,
      id: ids.name,
      realm_id: ids.realm,
      user_authentication_info_id: ids.user,
      username: `name-${ids.name}`,
      password_profile_id: ids.passwords,
      password_hash: PASSWORD_HASH,
      meta,
    },
  };
  return { ids, lines, all: Object.values(lines) as Json[] };
}

export type ImportSource = readonly (Json | string)[] | Uint8Array;

export function bytesOf(source: ImportSource): Uint8Array {
  if (source instanceof Uint8Array) return source;
  return Buffer.from(
    source.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''),
  );
}

/** The bytes in pieces of this size, which split lines. */
async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

export interface ImportRun extends ImportResult {
  /** `line N: reason`, in the order of the reports. */
  readonly refusals: readonly string[];
}

export interface ImportRunOptions extends Partial<ImportOptions> {
  readonly isUpsert?: boolean;
  readonly isStrict?: boolean;
  readonly pieceBytes?: number;
  /** Of a CSV file. */
  readonly map?: CsvMap;
}

/** Imports as the command does, in this process. By default it continues after rejected lines. */
export function runImport(
  db: OpenDatabase,
  source: ImportSource,
  options: ImportRunOptions = {},
): Promise<ImportRun> {
  return runImportFrom(db, pieces(bytesOf(source), options.pieceBytes ?? 1_000), options);
}

export async function runImportFrom(
  { engine, keyring }: OpenDatabase,
  chunks: AsyncIterable<Uint8Array>,
  options: ImportRunOptions = {},
): Promise<ImportRun> {
  const { isUpsert = false, isStrict = false, map, pieceBytes: _, ...importOptions } = options;
  const refusals: string[] = [];
  const read = openLineParser({
    clock: systemClock,
    isUpsert,
    isStrict,
    installation: await engine.access.storeId(),
    seal: (place, plain) => keyring.seal('oidc-client-secret', place, plain),
    open: (place, sealed) => keyring.open('oidc-client-secret', place, sealed),
    signerKeyIds: await openSignerKeys(engine.access, keyring, systemClock).ids(),
  });
  const report = await importLines(map ? csvLines(map, chunks) : splitLines(chunks), {
    store: engine.records,
    read,
    stopAtFirst: false,
    fromLine: 1,
    signal: new AbortController().signal,
    onRefused: (line, reason) => refusals.push(`line ${line}: ${reason}`),
    onProgress: () => undefined,
    ...importOptions,
  });
  return { ...report, refusals };
}

export const importCounts = (imported: number, unchanged: number, replaced: number, refused: number) => ({
  imported,
  unchanged,
  replaced,
  refused,
});

const TABLES = [
  'realm',
  'oidc_profile',
  'password_profile',
  'user_info',
  'oidc_profile_info',
  'password_profile_info',
];

/** Every row of realm data, without random values. */
export async function realmRows(
  database: TestDatabase,
  omitted: readonly string[] = ['revision', 'client_secret_sealed', 'origin'],
): Promise<Json[]> {
  const found: Json[] = [];
  const numbers = await numbersOfRealms(database);
  for (const table of TABLES) {
    const id = table === 'realm' ? 'realm_id' : 'id';
    const rows = await database.query<Json>(`select * from ${table} order by realm_id, ${id}`);
    // SQLite stores an ID as bytes, and below a realm that of the realm as a number.
    const shownValue = (name: string, value: unknown) =>
      /(?:^|_)id$/.test(name) ? (numbers.get(value as number) ?? uuidText(value as StoredId)) : value;
    for (const row of rows) {
      const kept = Object.entries(row).filter(([name]) => !omitted.includes(name));
      found.push(Object.fromEntries(kept.map(([name, value]) => [name, shownValue(name, value)])));
    }
  }
  return found;
}

/** The IDs of realms by the numbers that SQLite stores for them. */
export async function numbersOfRealms(
  database: Pick<TestDatabase, 'query'>,
): Promise<ReadonlyMap<number, string>> {
  const clocks = await database
    .query<{ number: number; realm_id: string }>('select number, realm_id from realm_clock')
    .catch(() => []);
  return new Map(clocks.map(({ number, realm_id }) => [number, realm_id]));
}

/** The events of the change feed with their record IDs, sorted. */
export async function changeEvents(database: TestDatabase): Promise<string[]> {
  const rows = await database.queryChanges<{ event: string; record_id: string }>(
    'select event, record_id from change',
  );
  return rows.map(({ event, record_id }) => `${event} ${record_id}`).sort();
}

/** The import lines of many users of one realm, parents first: all resources, null members, unusual texts. */
export function manyUserLines(users: number): Json[] {
  const { lines } = realmLines();
  const { realm: shop, oidc, passwords } = lines;
  const origin = { data: { id: 'hello-world', type: 'merchant-realm-mappings' } };
  const lineList: Json[] = [
    { ...shop, name: 'Läden', redirect_uris: ['https://shop.example/cb'], relationships: { origin } },
    { ...oidc, client_secret: 'of-the-provider 🗝' },
    { ...lines.oidc, id: mintId(), client_secret: undefined, name: '  two  ' },
    { ...passwords, enable_one_time_password_token: true },
  ];
  for (let number = 0; number < users; number += 1) {
    const isOdd = number % 2 === 1;
    const at = { created_at: new Date(number).toISOString(), updated_at: new Date(number * 7).toISOString() };
    const user = {
      ...lines.user,
      id: mintId(),
      meta: { ...at, creation_status: isOdd ? 'IN_PROGRESS' : 'COMPLETE' },
    };
    const owner = { user_authentication_info_id: user.id };
    lineList.push(
      isOdd ? { ...user, given_name: 'Ünï\u0301', middle_name: '"\\/', family_name: '👩‍👩‍👧' } : user,
      { ...lines.link, ...owner, id: mintId(), subject: `e\u0301 ${number}\u2028`, meta: at },
      {
        ...lines.name,
        ...owner,
        id: mintId(),
        username: `STRASSE-${number}`,
        password_hash: isOdd ? lines.name.password_hash : undefined,
        meta: at,
      },
    );
  }
  return lineList.map((line) => JSON.parse(JSON.stringify(line)) as Json);
}
