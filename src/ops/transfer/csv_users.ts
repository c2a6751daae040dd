import { z } from 'zod';
import { attempt } from '../../model/attempt.ts';
import { Refusal } from '../../model/fault.ts';
import { parseUuid, type Uuid } from '../../model/id.ts';
import { membersOf, type Resource, valueType } from '../../model/resource.ts';
import { includableBelow, user } from '../../model/resources.ts';
import type { KeyedRecord } from '../../model/store.ts';
import { isJsonObject, type JsonObject } from '../../model/text/json_object.ts';
import { type Cells, csvRow, csvRows } from './csv_cells.ts';
import { type ExportOptions, lineMaker, scanPages } from './export.ts';
import type { SourceLine } from './line_reader.ts';

/** The links that a row can have. */
const LINKS = includableBelow(user);

const MAP = z.strictObject({
  /** The members that each column becomes, by their paths; default: the name of each column is a path. */
  columns: z.record(z.string(), z.union([z.string(), z.array(z.string())])).optional(),
  /** The members of rows whose cells do not have them. */
  constants: z.record(z.string(), z.union([z.string(), z.boolean()])).default({}),
});

export type CsvMap = z.output<typeof MAP>;

/** Throws Refusal. */
export function parseCsvMap(text: string): CsvMap {
  const map = MAP.safeParse(attempt(() => JSON.parse(text))).data;
  if (map) return map;
  throw new Refusal('the map must be JSON with the objects columns and constants', { isUsage: true });
}

/**
 * Reads CSV with a header row, and yields the import lines of the rows of each chunk together. They have the number of their row, as a
 * spreadsheet counts: the header row is 1, and line breaks in cells do not count. Throws Refusal if the map does not fit the header.
 */
export async function* csvLines(
  map: CsvMap,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly SourceLine[]> {
  let number = 0;
  let readRow: ReturnType<typeof openRowReader> | undefined;
  for await (const rows of csvRows(chunks)) {
    const lines: SourceLine[] = [];
    for (const cells of rows) {
      number += 1;
      if (cells && !readRow) readRow = openRowReader(map, cells);
      else for (const line of (cells && readRow?.(cells)) ?? [UNREADABLE]) lines.push({ number, ...line });
    }
    yield lines;
  }
}

const problemOf = (problem: string) => ({ bytes: undefined, problem });
const UNREADABLE = problemOf('has a misplaced or open quote, or is too long: no row after it was read');

/** Returns the function that makes import lines of a row. */
function openRowReader({ columns, constants }: CsvMap, headerRow: Cells) {
  const header = headerRow.map((name) => name.trim());
  const named = columns ?? Object.fromEntries(header.map((name) => [name, name]));
  const targets = Object.entries(named).flatMap(([name, paths]) => {
    if (header.filter((each) => each === name).length !== 1)
      throw new Refusal(`the header row must have the column ${JSON.stringify(name)} once`, {
        isUsage: true,
      });
    return [paths].flat().map((path) => ({ path, column: header.indexOf(name) }));
  });
  const sources = Map.groupBy(targets, ({ path }) => path);
  return (cells: Cells): readonly Omit<SourceLine, 'number'>[] => {
    if (cells.every((cell) => cell === '')) return [];
    if (cells.length !== header.length)
      return [problemOf(`has ${cells.length} cells, and the header row ${header.length}`)];
    // In place of bytes that are not UTF-8.
    if (cells.some((cell) => cell.includes('\ufffd'))) return [problemOf('is not UTF-8')];
    const row: Members = Object.create(null);
    for (const [path, value] of Object.entries(constants)) put(row, path, value);
    for (const [path, from] of sources) {
      const texts = from.map(({ column }) => cells[column]).filter(Boolean);
      if (texts.length > 0) put(row, path, texts.join(' '));
    }
    return linesOf(row).map((line) => ({ bytes: Buffer.from(JSON.stringify(line)) }));
  };
}

type Members = Record<string, unknown>;

/** The members whose values are texts. Others may be true or false, also those of other systems. */
const TEXTS: ReadonlySet<string> = new Set(
  [user, ...LINKS].flatMap((resource) =>
    membersOf(resource).flatMap((member) => (valueType(member) === 'boolean' ? [] : [member.name])),
  ),
);

/** Sets a member. The objects on its path have no prototype, which a path could name. */
function put(row: Members, path: string, value: string | boolean): void {
  const names = path.split('.');
  const last = names.pop() as string;
  let within = row;
  for (const name of names) {
    if (!isJsonObject(within[name])) within[name] = Object.create(null);
    within = within[name] as Members;
  }
  const isFlag = !TEXTS.has(last) && /^(true|false)$/i.test(String(value));
  within[last] = isFlag ? /^t/i.test(String(value)) : value;
}

/** The lines of a user and its links. A link without a subject or a username is none. */
function linesOf({ links = {}, ...members }: JsonObject): readonly object[] {
  const { realm_id } = members;
  const realm = parseUuid(String(realm_id));
  const id = stableId(user, realm, members.id);
  const linkLines = Object.values(links as Record<string, JsonObject>).flatMap((link) => {
    const resource = LINKS.find(({ unique: [names] }) => link[names?.at(-1) ?? ''] !== undefined);
    if (!resource) return [];
    const identity = resource.unique[0]?.map((name) => link[name]).join(' ');
    const linkId = stableId(resource, realm, link.id ?? identity);
    return [{ type: resource.type, realm_id, user_authentication_info_id: id, ...link, id: linkId }];
  });
  return [{ type: user.type, ...members, id }, ...linkLines];
}

/** The ID itself if it is a UUID, and otherwise one made of it (RFC 9562, 5.5): the same for every import into the realm. */
function stableId({ type }: Resource, realm: Uuid | undefined, id: unknown): unknown {
  if (realm === undefined || id === undefined) return id;
  return parseUuid(String(id)) ?? Bun.randomUUIDv5(`${type} ${id}`, realm);
}

/** Its line has every member. */
const NO_RECORD = { key: [], record: { created_at: 0, updated_at: 0 } } as unknown as KeyedRecord;
/** The paths of members that a row has without them. */
const IMPLIED = /\btype$|^links\..*\.(realm_id|user_authentication_info_id)$/;

/**
 * Writes the users of a snapshot as CSV: a row for each user with a link, and one more for each further link. The columns have the paths
 * of members as names. Returns the number of users.
 */
export async function exportUsers(plan: ExportOptions): Promise<number> {
  const lines = new Map([user, ...LINKS].map((resource) => [resource, lineMaker(resource, plan)] as const));
  const cellsOf = (resource: Resource, stored: KeyedRecord) =>
    flattened(lines.get(resource)?.(stored) ?? {}, resource === user ? '' : 'links.1.');
  const paths = [...lines.keys()].flatMap((resource) => cellsOf(resource, NO_RECORD).map(([path]) => path));
  const columns = [...new Set(paths)].filter((path) => !IMPLIED.test(path));

  /** The cells of the links of users of one realm, which are in the order of their IDs, by user. */
  async function linksOf(owners: readonly KeyedRecord[]) {
    const [first, last] = [owners[0], owners.at(-1)] as [KeyedRecord, KeyedRecord];
    const found = LINKS.map(async (resource) => {
      const links = await plan.snapshot.scanBelow(resource, first.key[0], first.record.id, last.record.id);
      return links.map((link) => ({ owner: link.key[1], cells: cellsOf(resource, link) }));
    });
    return Map.groupBy((await Promise.all(found)).flat(), ({ owner }) => owner);
  }

  await plan.write(csvRow(columns));
  let users = 0;
  for await (const page of scanPages(plan, user)) {
    for (const owners of Map.groupBy(page, ({ key }) => key[0]).values()) {
      const links = await linksOf(owners);
      const rows = owners.flatMap((owner) =>
        (links.get(owner.record.id) ?? [{ cells: [] }]).map((link) => {
          const cells = new Map([...cellsOf(user, owner), ...link.cells]);
          return csvRow(columns.map((path) => cells.get(path)));
        }),
      );
      await plan.write(rows.join(''));
    }
    users += page.length;
    plan.onProgress(users);
  }
  return users;
}

/** The values of a line by the paths of its members. */
function flattened(line: object, prefix: string): readonly [string, unknown][] {
  return Object.entries(line).flatMap(([name, value]): readonly [string, unknown][] =>
    isJsonObject(value) ? flattened(value, `${prefix}${name}.`) : [[prefix + name, value]],
  );
}
