import type { Database, Statement } from 'bun:sqlite';
import { type Uuid, uuidBytes } from '../src/model/id.ts';
import { eventNumber } from '../src/model/log/event.ts';
import { RESOURCES } from '../src/model/resources.ts';
import { foldedKey } from '../src/model/text/folded_key.ts';
import { UNICODE_VERSION } from '../src/model/text/folding.ts';
import { wordsOf } from '../src/model/text/words.ts';
import { rowIdOf } from '../src/records/store/sqlite/row_id.ts';

type Value = string | number | Uint8Array | null;

/** One prepared insert with its values, ready to run. */
export interface BareInsert {
  readonly statement: Statement<unknown, Value[]>;
  readonly values: Value[];
}

interface Line {
  readonly type: string;
  readonly id: Uuid;
  readonly realm_id?: Uuid;
  readonly user_authentication_info_id?: Uuid;
  readonly meta: { readonly created_at: string; readonly updated_at: string; readonly issuer?: string };
  readonly [member: string]: unknown;
}

const REVISION = '0123456789abcdef';
const REVISION_BYTES = Uint8Array.fromHex(REVISION);

/** A handwritten insert. `realm`: its number. */
interface BareTable {
  readonly columns: string;
  readonly values: (line: Line, realm: number) => Value[];
}

/** Handwritten inserts into each table: the lower bound of the cost of an import. */
const TABLES: Readonly<Record<string, BareTable>> = {
  'authentication-realm': {
    columns: 'realm(realm_id, name, redirect_uris, duplicate_email_policy, preset',
    values: (line) => [uuidBytes(line.id), line.name as string, '[]', 'allowed', 0],
  },
  'oidc-profile': {
    columns: 'oidc_profile(realm_id, id, name, discovery_url, client_id, issuer',
    values: (line, realm) => [
      ...head(line, realm),
      ...texts(line, 'name', 'discovery_url', 'client_id'),
      line.meta.issuer ?? '',
    ],
  },
  password_profile: {
    columns: 'password_profile(realm_id, id, name, username_format, enable_one_time_password_token',
    values: (line, realm) => [...head(line, realm), ...texts(line, 'name'), 'any', 0],
  },
  user_authentication_info: {
    columns:
      'user_info(realm_id, id, name, email, creation_status, email_vouched, enabled, name_key, email_key, unicode_version, words',
    values: (line, realm) => {
      const [name = '', email = ''] = texts(line, 'name', 'email');
      const keys = [foldedKey(name), foldedKey(email)];
      return [
        ...head(line, realm),
        name,
        email,
        'COMPLETE',
        1,
        1,
        ...keys,
        UNICODE_VERSION,
        spaced(keys.join(' ')),
      ];
    },
  },
  user_authentication_oidc_profile_info: {
    columns: 'oidc_profile_info(realm_id, id, user_id, subject, issuer, oidc_profile_id, subject_crc',
    values: (line, realm) => [
      ...head(line, realm),
      ...owner(line),
      ...texts(line, 'subject', 'issuer'),
      uuidBytes(line.oidc_profile_id as Uuid),
      Bun.hash.crc32(line.subject as string),
    ],
  },
  user_authentication_password_profile_info: {
    columns:
      'password_profile_info(realm_id, id, user_id, username, password_profile_id, username_key, unicode_version, ' +
      'username_crc, words',
    values: (line, realm) => {
      const username = line.username as string;
      const profile = uuidBytes(line.password_profile_id as Uuid);
      const key = foldedKey(username);
      return [
        ...head(line, realm),
        ...owner(line),
        username,
        profile,
        key,
        UNICODE_VERSION,
        Bun.hash.crc32(key),
        spaced(key),
      ];
    },
  },
};

const spaced = (key: string): string => wordsOf(key).join(' ');
const head = (line: Line, realm: number): Value[] => [realm, uuidBytes(line.id)];
const owner = (line: Line): Value[] => [uuidBytes(line.user_authentication_info_id as Uuid)];
const texts = (line: Line, ...names: string[]): string[] => names.map((name) => line[name] as string);

/** Turns lines into prepared inserts: the row and its change record. No two records of this population share a
 * row ID. Change numbers start after `lastSeq`. */
export function prepareBare(db: Database, lastSeq = 0): (line: string) => readonly BareInsert[] {
  const statements = new Map(
    Object.entries(TABLES).map(([type, { columns }]) => {
      const columnList = `${columns}, created_at, updated_at, revision, slot)`;
      const placeholders = columnList.split(',').map(() => '?');
      return [type, db.prepare<unknown, Value[]>(`insert into ${columnList} values (${placeholders})`)];
    }),
  );
  const change = db.prepare<unknown, Value[]>(
    'insert into log_entry (realm_id, seq, event, record_id, revision, user_id, at, actor) ' +
      'values (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const clock = db.prepare<{ readonly number: number }, [string]>(
    'insert into realm_clock (realm_id, seq) values (?, 0) on conflict (realm_id) do update set seq = seq returning number',
  );
  const numbers = new Map<string, number>();
  let seq = lastSeq;
  return (text) => {
    const line = JSON.parse(text) as Line;
    const table = TABLES[line.type];
    const statement = statements.get(line.type);
    if (!table || !statement) throw new Error(`no table for ${line.type}`);
    const at = Date.parse(line.meta.created_at);
    seq += 1;
    const resource = RESOURCES.find(({ type }) => type === line.type);
    const event = eventNumber(`${resource?.name}.created`);
    const owner = line.user_authentication_info_id;
    const realm = line.realm_id ?? line.id;
    const number = numbers.get(realm) ?? (clock.get(realm)?.number as number);
    numbers.set(realm, number);
    const slot = line.realm_id ? rowIdOf(uuidBytes(line.id)) : number;
    return [
      { statement, values: [...table.values(line, number), at, at, REVISION, slot] },
      {
        statement: change,
        values: [
          number,
          seq,
          event,
          uuidBytes(line.id),
          REVISION_BYTES,
          owner ? uuidBytes(owner) : null,
          at,
          'bare',
        ] as Value[],
      },
    ];
  };
}
