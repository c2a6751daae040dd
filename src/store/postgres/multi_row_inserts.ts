import { ancestry } from '../../domain/resource.ts';
import { RESOURCES, user } from '../../domain/resources.ts';
import type { Statement, StatementBatch } from '../transaction_work.ts';

/** Rows of one statement. Few numbers, because the server prepares each statement. */
const ROW_COUNTS = [32, 8, 2];

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
  return ((mayViolate && byTable(statements)) || adjacent(statements)).flatMap(inRows);
}

/** Undefined where another table than those of TABLES is written. */
function byTable(statements: readonly Statement[]): readonly (readonly Statement[])[] | undefined {
  const groups = [...Map.groupBy(statements, ({ text }) => text)];
  const rankOf = (text: string) => TABLES.indexOf(/^insert into (\w+)/.exec(text)?.[1] ?? '');
  if (groups.some(([text]) => rankOf(text) < 0)) return undefined;
  return groups.toSorted(([one], [other]) => rankOf(one) - rankOf(other)).map(([, group]) => group);
}

/** Statements with the same text that follow one another. */
function adjacent(statements: readonly Statement[]): Statement[][] {
  const groups: Statement[][] = [];
  for (const statement of statements) {
    const last = groups.at(-1);
    if (last?.[0]?.text === statement.text) last.push(statement);
    else groups.push([statement]);
  }
  return groups;
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
