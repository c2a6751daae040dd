import type { SQL } from 'bun';
import { distributionColumn, REALM_TABLES } from './table_names.ts';

/** The used members of a plan node of `explain (verbose, format json)`. */
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

/** The tables of realm data in the plan of a statement. */
export interface PlanRealms {
  /** Tables that the plan scans or writes, once for each node. */
  readonly scanned: readonly string[];
  /** Those of them without a realm: neither a parameter nor a constant restricts it. */
  readonly unscoped: readonly string[];
}

/**
 * Inspects the generic plan of a statement, as a router does. A scan is scoped if one of its conditions restricts the realm,
 * directly or through a join; an insert is scoped by its first column, in each of its rows. The connection needs `useGenericPlans`.
 */
export async function inspectPlan(sql: SQL, text: string): Promise<PlanRealms> {
  await sql.unsafe(`prepare inspected as ${text}`).simple();
  try {
    const [{ count }] = await sql.unsafe(
      `select coalesce(array_length(parameter_types, 1), 0) as count from pg_prepared_statements where name = 'inspected'`,
    );
    const values = count === 0 ? '' : `(${Array(count).fill('null').join()})`;
    const [row] = await sql.unsafe(`explain (verbose, format json) execute inspected${values}`);
    const nodes = nodesOf(row['QUERY PLAN'][0].Plan).filter(accessesRealmData);
    const unnamed = nodes.filter((node) => !isScoped(node) && !isInsertOfRows(node, text));
    return { scanned: nodes.map(tableOf), unscoped: unnamed.map(tableOf) };
  } finally {
    await sql.unsafe('deallocate inspected').simple();
  }
}

/** Makes a connection plan statements without parameter values. */
export async function useGenericPlans(sql: SQL): Promise<void> {
  await sql.unsafe('set plan_cache_mode = force_generic_plan').simple();
}

function nodesOf(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

function tableOf(node: PlanNode): string {
  return node['Relation Name'] ?? '';
}

/** Excludes updates and deletes, whose tables are scanned by a node below. */
function accessesRealmData(node: PlanNode): boolean {
  const isScanned = node['Node Type'] !== 'ModifyTable' || node.Operation === 'Insert';
  return REALM_TABLES.includes(tableOf(node)) && isScanned;
}

const VALUE = String.raw`(?:\$[1-9]\d*|'[0-9a-f-]{36}'::uuid)`;
const IS_VALUE = new RegExp(`^${VALUE}$`);
const REALM_COLUMNS = [...new Set(REALM_TABLES.map(distributionColumn))].join('|');
const BEGINS_WITH_REALM = new RegExp(String.raw`^insert into \w+ \((?:${REALM_COLUMNS})[,)]`);
const IS_REALM = new RegExp(String.raw`^(?:\w+\.)?(?:${REALM_COLUMNS}) = ${VALUE}$`);

function isScoped(node: PlanNode): boolean {
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

/** A plan does not contain the values of several rows, so they are read in the text. */
function isInsertOfRows({ Operation, Plans = [] }: PlanNode, text: string): boolean {
  if (Operation !== 'Insert' || !Plans.some((each) => each['Node Type'] === 'Values Scan')) return false;
  if (!BEGINS_WITH_REALM.test(text)) return false;
  const rows = /\bvalues (\(.*\))$/s.exec(text)?.[1]?.slice(1, -1).split('), (') ?? [];
  return rows.length > 1 && rows.every((row) => IS_VALUE.test(row.split(', ')[0] ?? ''));
}

/** The operands of the conjunctions in a condition. */
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
