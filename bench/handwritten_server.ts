import { Database } from 'bun:sqlite';
import { SQL } from 'bun';
import { etags } from '../src/http/pipeline/present.ts';
import { type StoredId, type Uuid, uuidBytes, uuidText } from '../src/model/id.ts';
import { LIMITS } from '../src/model/limits.ts';
import type { AnyRecord } from '../src/model/resource.ts';
import { SQLITE } from '../src/records/store/sqlite/dialect.ts';
import { rowIdOf } from '../src/records/store/sqlite/row_id.ts';
import { MAPPED_BYTES_MAX } from '../src/sql/sqlite/connection.ts';

/**
 * A reference server, written by hand for the two lookups alone: `Bun.serve` around the statements of the service, with
 * its headers and bodies, byte for byte (bench/same_bytes.ts). It accepts one token until that expires, and checks no
 * rights. Lookups of one turn of the event loop share a read transaction on SQLite, and a statement on PostgreSQL.
 * Arguments: port, database file or URL of PostgreSQL, base URL of the service; environment: BENCH_TOKEN.
 */
const [port, database = '', baseUrl = ''] = process.argv.slice(2);
const token = process.env.BENCH_TOKEN ?? '';
const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { exp: number };
const expiries = new Map([[`Bearer ${token}`, claims.exp * 1000]]);
const etagOf = etags(baseUrl);
const requestIdPrefix = crypto.randomUUID().replaceAll('-', '').slice(0, 20);
let requestCount = 0;

interface Row {
  /** Subject and issuer, or username. */
  readonly [member: string]: unknown;
  readonly revision: AnyRecord['revision'];
}

interface LookupKey {
  readonly realm: string;
  readonly user: string;
  readonly id: string;
}

type Read = (key: LookupKey) => Row | undefined | Promise<Row | undefined>;

interface Kind {
  readonly table: string;
  readonly columns: string;
  /** Path below the user. */
  readonly path: string;
  body(row: Row, key: LookupKey): string;
}

const isoTexts = ({ created_at, updated_at }: Row): string => {
  const created = new Date(Number(created_at)).toISOString();
  const updated = updated_at === created_at ? created : new Date(Number(updated_at)).toISOString();
  return `"meta":{"created_at":"${created}","updated_at":"${updated}"}`;
};

const KINDS: readonly Kind[] = [
  {
    table: 'oidc_profile_info',
    columns: 'subject, issuer, oidc_profile_id, created_at, updated_at, revision',
    path: 'user-authentication-oidc-profile-info',
    body: (row, { realm, user, id }) =>
      `{"data":{"id":"${id}","type":"user_authentication_oidc_profile_info","subject":${JSON.stringify(row.subject)},` +
      `"issuer":${JSON.stringify(row.issuer)},"oidc_profile_id":"${uuidText(row.oidc_profile_id as StoredId)}",${isoTexts(row)}},` +
      `"links":{"self":"${baseUrl}/v2/authentication-realms/${realm}/user-authentication-info/${user}` +
      `/user-authentication-oidc-profile-info/${id}"}}`,
  },
  {
    table: 'password_profile_info',
    columns: 'username, password_profile_id, created_at, updated_at, revision',
    path: 'user-authentication-password-profile-info',
    body: (row, { realm, user, id }) =>
      `{"data":{"id":"${id}","type":"user_authentication_password_profile_info","username":${JSON.stringify(row.username)},` +
      `"password_profile_id":"${uuidText(row.password_profile_id as StoredId)}",${isoTexts(row)}},` +
      `"links":{"self":"${baseUrl}/authentication-realms/${realm}/user-authentication-info/${user}` +
      `/user-authentication-password-profile-info/${id}"}}`,
  },
];

const openRead = database.startsWith('postgres://') ? openPostgres(database) : openSqlite(database);

function openSqlite(file: string): (kind: Kind) => Read {
  const db = new Database(file, { readwrite: true });
  db.run(`pragma mmap_size = ${MAPPED_BYTES_MAX}`);
  const begin = db.prepare('begin');
  const commit = db.prepare('commit');
  const selectNumber = db.prepare<{ number: number }, [string]>(
    'select number from realm_clock where realm_id = ?',
  );
  const numbers = new Map<string, number>();
  let isOpen = false;
  const end = () => {
    commit.run();
    isOpen = false;
  };
  return ({ table, columns }) => {
    const select = db.prepare<Row, [number, string, string, number]>(
      `select ${columns} from ${table} where realm_id = ? and user_id = ${SQLITE.id('?')} and id = ${SQLITE.id('?')} and slot = ?`,
    );
    return ({ realm, user, id }) => {
      if (!isOpen) {
        begin.run();
        isOpen = true;
        setImmediate(end);
      }
      const number = numbers.get(realm) ?? selectNumber.get(realm)?.number;
      if (number === undefined) return undefined;
      numbers.set(realm, number);
      return select.get(number, user, id, rowIdOf(uuidBytes(id as Uuid))) ?? undefined;
    };
  };
}

function openPostgres(url: string): (kind: Kind) => Read {
  const sql = new SQL(url, { max: 4 });
  return ({ table, columns }) => {
    const text = `select ${columns}, k.query_number::integer as query_number
      from unnest($2::uuid[], $3::uuid[]) with ordinality as k (key_user_id, key_id, query_number)
      join ${table} on realm_id = $1 and user_id = k.key_user_id and id = k.key_id`;
    const waiting: { readonly key: LookupKey; readonly resolve: (row: Row | undefined) => void }[] = [];
    let isRunning = false;
    async function run(): Promise<void> {
      const sent = waiting.splice(0, LIMITS.lookupsPerStatementMax);
      const list = (column: keyof LookupKey) => `{${sent.map(({ key }) => key[column]).join()}}`;
      const rows = await sql.unsafe(text, [sent[0]?.key.realm, list('user'), list('id')]);
      const found = new Array<Row | undefined>(sent.length);
      for (const row of rows) found[row.query_number - 1] = row;
      for (const [index, { resolve }] of sent.entries()) resolve(found[index]);
      if (waiting.length > 0) setImmediate(run);
      else isRunning = false;
    }
    return (key) =>
      new Promise((resolve) => {
        waiting.push({ key, resolve });
        if (isRunning) return;
        isRunning = true;
        setImmediate(run);
      });
  };
}

function respond(request: Request, kind: Kind, row: Row | undefined, key: LookupKey): Response {
  if (row === undefined) return new Response(null, { status: 404 });
  requestCount += 1;
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    ETag: etagOf(row),
    'Cache-Control': 'private, no-cache',
    'X-Request-Id': `${requestIdPrefix}-${requestCount.toString(36)}`,
  };
  if (request.headers.get('connection')?.toLowerCase() === 'close') headers.Connection = 'close';
  return new Response(kind.body(row, key), { headers });
}

function handlerOf(kind: Kind) {
  const read = openRead(kind);
  return (request: Bun.BunRequest): Response | Promise<Response> => {
    const expiry = expiries.get(request.headers.get('authorization') ?? '');
    if (expiry === undefined || expiry < Date.now()) return new Response(null, { status: 401 });
    const params = request.params as unknown as LookupKey;
    const row = read(params);
    return row instanceof Promise
      ? row.then((found) => respond(request, kind, found, params))
      : respond(request, kind, row, params);
  };
}

const prefixOf = (path: string) => `/authentication-realms/:realm/user-authentication-info/:user/${path}/:id`;
Bun.serve({
  hostname: '127.0.0.1',
  port: Number(port),
  development: false,
  routes: Object.fromEntries(KINDS.map((kind) => [`/v2${prefixOf(kind.path)}`, { GET: handlerOf(kind) }])),
  fetch: () => new Response(null, { status: 404 }),
});
