import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deliveryTexts } from '../../src/deliver/store/deliveries.ts';
import { feedTexts } from '../../src/deliver/store/feed.ts';
import { webhookProgressTexts } from '../../src/deliver/store/progress.ts';
import { webhookTexts } from '../../src/deliver/store/webhooks.ts';
import { erasingTexts } from '../../src/log/store/erase.ts';
import { logTexts } from '../../src/log/store/log.ts';
import { logReadingTexts } from '../../src/log/store/reading.ts';
import { userKeyTexts } from '../../src/log/store/user_keys.ts';
import { ancestry, membersOf, type Resource } from '../../src/model/resource.ts';
import { passwordProfileInfo, RESOURCES, user } from '../../src/model/resources.ts';
import { dependentsOf } from '../../src/records/store/cascade.ts';
import { idempotencyTexts } from '../../src/records/store/idempotency.ts';
import { type ListPlan, listTable, planList } from '../../src/records/store/lists/list_plans.ts';
import { POSTGRES, postgresStatements } from '../../src/records/store/postgres/dialect.ts';
import { budgetTexts } from '../../src/sign_in/store/budgets.ts';
import { credentialTexts } from '../../src/sign_in/store/credentials.ts';
import { selectAuthenticated } from '../../src/sign_in/store/password_macs.ts';
import type { Dialect } from '../../src/sql/dialect.ts';
import { LEASE_TEXTS } from '../../src/sql/leases.ts';
import { postgresIndexesOf } from '../../src/sql/postgres/indexes.ts';
import { numberParameters } from '../../src/sql/postgres/parameters.ts';
import { CITUS_WRITE } from '../../src/sql/postgres/scope_locks.ts';
import * as installation from '../../src/sql/tables/installation.ts';
import * as realmData from '../../src/sql/tables/realm_data.ts';
import type { Table } from '../../src/sql/tables/table.ts';
import * as webhooks from '../../src/sql/tables/webhooks.ts';

/** Settings of a server that logs every statement with its database. */
export const STATEMENT_LOGGING = {
  log_statement: 'all',
  log_line_prefix: '@@%d ',
  log_parameter_max_length: '0',
};

/** A statement with normalized white space. */
export function plainText(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** The statements sent to these databases, from the log of a server with STATEMENT_LOGGING. */
export function statementsInLog(log: string, databases: ReadonlySet<string>): ReadonlySet<string> {
  const texts = log.split(/^@@/m).flatMap((entry) => {
    const [, database = '', text = ''] =
      /^(\S+) LOG: {2}(?:statement|execute [^:]*): (.*)$/s.exec(entry) ?? [];
    return databases.has(database) ? [plainText(text)] : [];
  });
  return new Set(texts);
}

/** Every statement that the resource descriptions imply, used or not. */
export function derivedTexts(): ReadonlySet<string> {
  const texts = [
    ...RESOURCES.flatMap((resource) => [...recordTexts(resource), ...listTexts(resource)]),
    ...RESOURCES.flatMap((removed) => dependentsOf(removed, RESOURCES, POSTGRES)).flatMap(
      ({ select, count }) => [select, count],
    ),
    ...Object.values(idempotencyTexts(POSTGRES)),
    ...[
      ...Object.values(logTexts(POSTGRES)),
      ...Object.values(logReadingTexts(POSTGRES)),
      ...Object.values(userKeyTexts(POSTGRES)),
      ...Object.values(erasingTexts(POSTGRES)),
      ...Object.values(LEASE_TEXTS),
      ...Object.values(budgetTexts(POSTGRES)).flat(),
    ],
    ...[
      ...Object.values(feedTexts(POSTGRES)),
      ...Object.values(webhookTexts(POSTGRES)),
      ...Object.values(deliveryTexts(POSTGRES)),
      ...Object.values(webhookProgressTexts(POSTGRES)),
    ],
    CITUS_WRITE.lockClock,
    ...Object.values(credentialTexts(POSTGRES)),
  ];
  return new Set(texts.map((text) => plainText(numberParameters(text).text)));
}

function recordTexts(resource: Resource): readonly string[] {
  const statements = postgresStatements(resource);
  const {
    select,
    selectStored,
    selectForRemoval: selectHeld,
    insert,
    replace,
    touch,
    removeAmong,
    selectInRealm: holder,
  } = statements;
  const { scan, scanRealm, scanBelow, references } = statements;
  const names = membersOf(resource).map(({ name }) => name);
  const patched = [[], names, ...names.map((name) => [name])].flatMap((set) => {
    const { update, updateIfRevision: updateSeen } = statements.patchStatements(
      Object.fromEntries(set.map((name) => [name, null])),
    );
    return [update, updateSeen];
  });
  return [
    ...[select, selectStored, selectHeld, insert, replace, touch, removeAmong, holder],
    ...[scan, scanRealm],
    ...(resource.parent === user ? [scanBelow] : []),
    ...references.map(({ exists }) => exists),
    ...patched,
    ...(resource === passwordProfileInfo ? [selectAuthenticated(POSTGRES)] : []),
  ];
}

/**
 * Lists without a filter: one adds a condition to the same text, and narrows it. Only realms are listed without a scope
 * that names one.
 */
function listTexts(resource: Resource): readonly string[] {
  const indexes = postgresIndexesOf(resource.table);
  const table = listTable(resource, postgresStatements(resource), indexes, POSTGRES);
  const depths = ancestry(resource).map((_, depth) => depth);
  const plans = depths.slice(resource.parent ? 1 : 0).flatMap((depth) => plansOf(table, depth));
  return [...table.presences, ...plans.flatMap(({ texts }) => Object.values(texts))];
}

function plansOf(table: ReturnType<typeof listTable>, depth: number): readonly ListPlan[] {
  return (['created_at', 'updated_at', 'id'] as const).flatMap((by) =>
    [true, false].flatMap((isDescending) =>
      [true, false].map((hasOnly) =>
        planList(
          table,
          {
            depth,
            filter: [],
            hasOnly,
            sort: { by, isDescending },
            where: '',
            gatheredMax: POSTGRES.lists.gatheredMax,
          },
          POSTGRES,
        ),
      ),
    ),
  );
}

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

/** A fixed part of an SQL statement in the source, between interpolated parts. */
export interface Fragment {
  readonly path: string;
  readonly text: string;
}

/**
 * Triggers of SQLite, statements printed, those about the nodes of Citus, and those of `doctor`, `copy` and `backup` on separate
 * connections.
 */
const NOT_OF_SERVICE =
  /\/(sqlite|copying|backups)\/|\/(inspection_queries|word_table|citus|bulkheads|schema_state|inspection\w*)\.ts$/;
/** What runs statements: sql/, and the folders store/ of other modules. */
const RUNS_STATEMENTS = /^sql\/|\/store\//;

/** The tables outside the resources by the names of their descriptions. */
const DESCRIBED_TABLES: Readonly<
  Record<string, Table & { readonly insert: string | ((dialect: Dialect) => string) }>
> = { ...installation, ...realmData, ...webhooks };

/** The texts of described tables that code names, within a literal or not: `clientTable.insert`. */
function tableTexts(code: string): readonly string[] {
  return [...code.matchAll(/\b(\w+Table)\.(select|insert|update)\b/g)].map(([, name = '', text]) => {
    const described = DESCRIBED_TABLES[name];
    if (!described) throw new Error(`no file of tables above describes ${name}`);
    const found = described[text as 'select' | 'insert' | 'update'];
    return typeof found === 'string' ? found : found(POSTGRES);
  });
}

/** A literal with a statement, or with one that continues a text of a table. */
const STARTS_STATEMENT =
  /^\s*(select|insert|update|delete|with|begin|set)\s|^\s*\$\{\w+\.(select|insert|update)\}/;

/** The fixed parts of every statement that a service can send to PostgreSQL, and the texts of tables whole. */
export function fragmentsInSource(): readonly Fragment[] {
  const paths = readdirSync(SRC, { recursive: true, encoding: 'utf8' });
  const ours = paths.filter(
    (path) => path.endsWith('.ts') && RUNS_STATEMENTS.test(path) && !NOT_OF_SERVICE.test(path),
  );
  return ours.sort().flatMap((path) => {
    const code = readFileSync(join(SRC, path), 'utf8').replace(/^\s*(\/\/|\/?\*).*$/gm, '');
    const literals = [...code.matchAll(/`([^`]*)`|'([^'\n]*)'/g)].map((found) => found[1] ?? found[2] ?? '');
    const parts = literals
      .filter((literal) => STARTS_STATEMENT.test(literal))
      .flatMap((literal) => literal.split(/\$\{[^}]*(?:\}|$)/));
    return [...parts, ...tableTexts(code)]
      .map((text) => ({ path, text: withoutPlaces(text) }))
      .filter(({ text }) => text.length >= FRAGMENT_CHARACTERS_MIN && text !== OF_HASH_SEARCH);
  });
}

/** A search by a hash column, which the tables of PostgreSQL do not have. */
const OF_HASH_SEARCH = 'as is_match from';

/** Shorter fragments occur in every statement. */
const FRAGMENT_CHARACTERS_MIN = 12;

/** A statement with all parameters as `?`. */
export function withoutPlaces(text: string): string {
  return plainText(text).replace(/[?$]\d+|\?/g, '?');
}
