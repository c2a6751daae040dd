import type { SQL } from 'bun';
import { REALM_COLUMN, REALM_TABLES } from '../../src/store/postgres/tables.ts';

/** A node of a plan as `explain (verbose, format json)` tells it, as far as it matters here. */
interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Parent Relationship'?: string;
  readonly 'Relation Name'?: string;
  readonly Operation?: string;
  readonly Alias?: string;
  readonly Output?: readonly string[];
  readonly 'Index Cond'?: string;
  readonly 'Recheck Cond'?: string;
  readonly Filter?: string;
  readonly Plans?: readonly PlanNode[];
}

/** What PostgreSQL makes of a statement. */
export interface PlanRealms {
  /** The tables of realm data that it touches, each as often as it does. */
  readonly scanned: readonly string[];
  /** Those of them that it touches without a realm: neither a place nor a fixed value says which. */
  readonly unscoped: readonly string[];
}

/**
 * Reads the plan that PostgreSQL makes of a statement before it knows any value, as a router does: a scan names its realm
 * where one of the conditions that all of its rows must meet is that realm, said or carried over from what it is joined
 * with; a row that is inserted names it as its first column. The connection must be `explaining`.
 */
export async function inspectPlan(sql: SQL, text: string): Promise<PlanRealms> {
  await sql.unsafe(`prepare judged as ${text}`).simple();
  try {
    const [{ count }] = await sql.unsafe(
      `select coalesce(array_length(parameter_types, 1), 0) as count from pg_prepared_statements where name = 'judged'`,
    );
    const values = count === 0 ? '' : `(${Array(count).fill('null').join()})`;
    const [row] = await sql.unsafe(`explain (verbose, format json) execute judged${values}`);
    const nodes = nodesOf(row['QUERY PLAN'][0].Plan).filter(isTouching);
    const unnamed = nodes.filter((node) => !isNamed(node));
    return { scanned: nodes.map(tableOf), unscoped: unnamed.map(tableOf) };
  } finally {
    await sql.unsafe('deallocate judged').simple();
  }
}

/** Makes a connection plan without values. */
export async function useGenericPlans(sql: SQL): Promise<void> {
  await sql.unsafe('set plan_cache_mode = force_generic_plan').simple();
}

function nodesOf(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

function tableOf(node: PlanNode): string {
  return node['Relation Name'] ?? '';
}

/** What an update or delete writes is scanned below it. */
function isTouching(node: PlanNode): boolean {
  const isScanned = node['Node Type'] !== 'ModifyTable' || node.Operation === 'Insert';
  return REALM_TABLES.includes(tableOf(node)) && isScanned;
}

const VALUE = String.raw`(?:\$[1-9]\d*|'[0-9a-f-]{36}'::uuid)`;
const IS_VALUE = new RegExp(`^${VALUE}$`);
const IS_REALM = new RegExp(String.raw`^(?:\w+\.)?${REALM_COLUMN} = ${VALUE}$`);

function isNamed(node: PlanNode): boolean {
  if (node.Operation === 'Insert') {
    const source = node.Plans?.find((each) => each['Parent Relationship'] === 'Outer');
    return IS_VALUE.test(source?.Output?.[0] ?? '');
  }
  const below = (node.Plans ?? []).filter((each) => each['Node Type'] === 'Bitmap Index Scan');
  const conditions = [node, ...below].flatMap((each) => [
    each['Index Cond'],
    each['Recheck Cond'],
    each.Filter,
  ]);
  return conditions.some((condition) => conjuncts(condition ?? '').some((each) => IS_REALM.test(each)));
}

/** The conditions that must all hold. */
function conjuncts(condition: string): readonly string[] {
  const bare = isEnclosed(condition) ? condition.slice(1, -1) : condition;
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at < bare.length; at += 1) {
    if (bare[at] === '(') depth += 1;
    if (bare[at] === ')') depth -= 1;
    if (depth === 0 && bare.startsWith(' AND ', at)) {
      parts.push(bare.slice(start, at));
      start = at + ' AND '.length;
    }
  }
  if (parts.length === 0) return bare === condition ? [bare] : conjuncts(bare);
  return [...parts, bare.slice(start)].flatMap(conjuncts);
}

function isEnclosed(condition: string): boolean {
  if (!condition.startsWith('(')) return false;
  let depth = 0;
  for (const [at, character] of [...condition].entries()) {
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (depth === 0) return at === condition.length - 1;
  }
  return false;
}
