import { ancestry } from '../../model/resource.ts';
import { RESOURCES, user } from '../../model/resources.ts';
import type { Statement, StatementBatch } from '../transaction_work.ts';

/** Rows of one statement. Few numbers, because the server prepares each statement. */
const ROW_COUNTS = [256, 32, 8, 2];

const ONE_ROW = /\bvalues\s+(\([?, ]+\))$/;

/** Users and their links, in the order of their references. */
const TABLES = RESOURCES.filter((resource) => ancestry(resource).includes(user)).map(({ table }) => table);

/**
 * Unites inserts of a batch into statements of several rows. Only inserts of users and links that may violate a constraint change their
 * order, users first: a bulk load tries each of them again in its place if one does. A profile keeps its place, because its rules apply
 * to the links behind it.
 */
export function uniteInserts({ statements, mayViolate }: StatementBatch): readonly Statement[] {
  if (statements.length === 1) return statements;
  const groups: Statement[][] = [];
  let last: string | undefined;
  for (const statement of statements) {
    // Inserts into TABLES may change places with one another, and with no other statement.
    const next = mayViolate && rankOf(statement.text) >= 0 ? 'below realms' : statement.text;
    if (next === last) groups.at(-1)?.push(statement);
    else groups.push([statement]);
    last = next;
  }
  return (mayViolate ? groups.flatMap(byTable) : groups).flatMap(inRows);
}

/** The place of a table among TABLES; -1 for every other table. */
function rankOf(text: string): number {
  return TABLES.indexOf(/^insert into (\w+)/.exec(text)?.[1] ?? '');
}

/** The statements of each text together, those of users first. */
function byTable(statements: readonly Statement[]): readonly (readonly Statement[])[] {
  const groups = [...Map.groupBy(statements, ({ text }) => text)];
  return groups.toSorted(([one], [other]) => rankOf(one) - rankOf(other)).map(([, group]) => group);
}

/** The statements of one text, as few as possible. */
function inRows(statements: readonly Statement[]): readonly Statement[] {
  const text = statements[0]?.text ?? '';
  const row = ONE_ROW.exec(text)?.[1];
  if (row === undefined) return statements;
  const united: Statement[] = [];
  let start = 0;
  for (const count of ROW_COUNTS) {
    const several = text + `, ${row}`.repeat(count - 1);
    for (; statements.length - start >= count; start += count) {
      const values = statements.slice(start, start + count).flatMap((each) => each.values);
      united.push({ text: several, values });
    }
  }
  return [...united, ...statements.slice(start)];
}
