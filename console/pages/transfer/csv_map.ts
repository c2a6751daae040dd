import { LIMITS } from '../../../src/model/limits.ts';
import { type Cells, csvRows } from '../../../src/ops/transfer/csv_cells.ts';
import { Problem } from '../../api/problem.ts';
import { memberLabel } from '../../parts/resource_labels.ts';

/** The header row and the first three users of a CSV file; none of JSON lines. Throws Problem. */
export async function readFirstRows(file: File): Promise<readonly Cells[]> {
  if (file.size > LIMITS.uploadBytesMax) throw new Problem('refused', 'This file is over 1 GiB: split it.');
  // Holds four rows of any accepted length.
  const start = file.slice(0, 4 * LIMITS.importLineBytesMax);
  const text = await start.text().catch(() => undefined);
  if (text === undefined)
    throw new Problem('refused', 'The file has changed, or cannot be read: choose it again.');
  if (text.trim() === '') throw new Problem('refused', 'This file is empty.');
  if (text.trimStart().startsWith('{')) return [];
  async function* chunks() {
    yield new TextEncoder().encode(text);
  }
  const rows = (await Array.fromAsync(csvRows(chunks()))).flat();
  const [header = [], ...users] = rows.filter((cells) => cells !== undefined);
  if (header.length < 2 || header.join().includes('\ufffd'))
    throw new Problem('refused', 'The header row must be UTF-8, with commas between the names of columns.');
  return [header.map((name) => name.trim()), ...users.filter((cells) => cells.some(Boolean)).slice(0, 3)];
}

/** The members of users, and the names of columns that are proposed for each: in lower case, letters and digits alone. */
const MEMBERS = Object.entries({
  id: /^((user|customer|external)?(id|no|number)|customer|uuid)$/,
  name: /^(full|display)?name$/,
  given_name: /^(given|first|fore)name$/,
  middle_name: /^middlename$/,
  family_name: /^(family|last|sur)name$/,
  email: /^e?mail(address)?$/,
  enabled: /^(is)?(enabled|active)$/,
  disabled: /^(is)?(disabled|blocked)$/,
  status: /^(user)?(status|state)$/,
  'meta.created_at': /^(meta)?(created|registered)(at|on)?$/,
}).map(([path, names]) => ({ path, names, label: memberLabel(path.replace('meta.', '')) }));
const NAME_PARTS = ['given_name', 'middle_name', 'family_name'];

/** Members and their columns. Without a column for the name, its parts make it up. */
export function sourcesOf(header: Cells, choices: ReadonlyMap<string, string>) {
  const letters = header.map((name) => name.toLowerCase().replace(/[^a-z0-9]/g, ''));
  const chosen = MEMBERS.map((member) => {
    const proposed = header[letters.findIndex((name) => member.names.test(name))];
    const column = choices.get(member.path) ?? proposed ?? '';
    return { ...member, column: header.includes(column) ? column : '' };
  });
  const parts = chosen.filter(({ path }) => NAME_PARTS.includes(path));
  return chosen.map((member) => {
    const columns = member.path === 'name' && member.column === '' ? parts : [member];
    return { ...member, columns: columns.map(({ column }) => column).filter(Boolean) };
  });
}

/** The map as `import --csv` reads it. */
export function mapOf(sources: ReturnType<typeof sourcesOf>, realm: string): string {
  const pairs = sources.flatMap(({ path, columns }) => columns.map((column) => ({ path, column })));
  const members = Map.groupBy(pairs, ({ column }) => column);
  const columns = [...members].map(([column, of]) => [column, of.map(({ path }) => path)]);
  return JSON.stringify({ columns: Object.fromEntries(columns), constants: { realm_id: realm } }, null, 2);
}
