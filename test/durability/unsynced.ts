import { Database } from 'bun:sqlite';

/** Preloaded into the program, this weakens `synchronous` of every connection; the durability tests must then fail. */
const weaker = process.env.FORCE_SYNCHRONOUS ?? 'off';
const run = Database.prototype.run;
Database.prototype.run = function (this: Database, sql: string, ...bindings: never[]) {
  return run.call(
    this,
    sql.replace('pragma synchronous = full', `pragma synchronous = ${weaker}`),
    ...bindings,
  );
};
