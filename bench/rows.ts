/** What one row of the benchmark on SQLite measures. The server is the service unless the text names another one. */
export const LOOKUP_ROWS = {
  lookup: 'lookups by ID',
  newest: 'lookups by ID, the newest 1 % of the users',
  handwritten: 'hand-written server',
  constant: '`Bun.serve` returning a constant',
  nginx: 'nginx returning a constant',
} as const;

/** Creates by several callers, on either engine. */
const CREATE_ROWS = {
  createTogether16: 'durable creates of a linked user, 16 callers',
  createTogether64: 'durable creates of a linked user, 64 callers',
  createSeparately16: 'durable creates of a user and a link by two requests, 16 callers',
  createSeparately64: 'durable creates of a user and a link by two requests, 64 callers',
} as const;

export const OPERATION_ROWS = {
  lookupAgain: 'lookups by ID, in the rounds of the rows below',
  person: 'a user with all links',
  reverse: 'reverse lookups, both kinds in turn',
  page: 'page of 25 users, one caller',
  pageWithTotal: 'page of 25 users with the exact total, one caller',
  createLink: 'durable creates of a link, one caller',
  ...CREATE_ROWS,
} as const;

export type LookupRow = keyof typeof LOOKUP_ROWS;
export type OperationRow = keyof typeof OPERATION_ROWS;
export type CreateRow = keyof typeof CREATE_ROWS;

/** What one row of the benchmark on PostgreSQL measures. */
export const POSTGRES_ROWS = {
  service16: 'lookups by ID, 16 callers',
  service64: 'lookups by ID, 64 callers',
  service256: 'lookups by ID, 256 callers',
  handwritten16: 'hand-written server, 16 callers',
  handwritten64: 'hand-written server, 64 callers',
  handwritten256: 'hand-written server, 256 callers',
  pgbench16: 'pgbench, 16 callers',
  pgbench64: 'pgbench, 64 callers',
  pgbench256: 'pgbench, 256 callers',
  serviceAlone: 'lookups by ID, one caller',
  pgbenchAlone: 'pgbench, one caller',
  driverAlone: 'bare `Bun.SQL`, one caller',
  person: 'a user with all links, 64 callers',
  reverse: 'reverse lookups, both kinds in turn, 64 callers',
  ...CREATE_ROWS,
} as const;

export type PostgresRow = keyof typeof POSTGRES_ROWS;

/** Where the rows of the benchmark on Citus come from. */
export const CITUS_SOURCES = ['plain', 'coordinator', 'worker'] as const;
export type CitusSource = (typeof CITUS_SOURCES)[number];

export const CITUS_OPERATIONS = {
  lookup1: 'lookups by ID, one caller',
  lookup64: 'lookups by ID, 64 callers',
  create16: 'durable creates of a linked user, 16 callers',
} as const;
export type CitusOperation = keyof typeof CITUS_OPERATIONS;
export type CitusRow = `${CitusSource} ${CitusOperation}`;

export function citusRow(source: CitusSource, operation: CitusOperation): CitusRow {
  return `${source} ${operation}`;
}
