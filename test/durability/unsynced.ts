import { Database } from 'bun:sqlite';

/** Loaded before the program, this weakens every connection: a proof that it still passes is none. */
const weaker = process.env.FORCE_SYNCHRONOUS ?? 'off';
const run = Database.prototype.run;
Database.prototype.run = function (this: Database, sql: string, ...bindings: never[]) {
  return run.call(
    this,
    sql.replace('pragma synchronous = full', `pragma synchronous = ${weaker}`),
    ...bindings,
  );
};
