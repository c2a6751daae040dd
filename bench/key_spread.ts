import { Database } from 'bun:sqlite';
import { uuidText } from '../src/model/id.ts';

const GAP_MAX = 1.5;

/**
 * Asserts that the requested keys are spread evenly over both tables in row order: keys on a few hot pages would give
 * better figures. Returns the widest gap between two neighbouring keys, as a multiple of the mean gap; throws if it is too
 * wide or a key is missing.
 */
export function assertSpread(path: string, paths: readonly string[]): number {
  const db = new Database(path, { readonly: true });
  const keys = new Set(paths.map((each) => each.slice(each.lastIndexOf('/') + 1)));
  const gaps = ['oidc_profile_info', 'password_profile_info'].map((table) => widestGap(db, table, keys));
  db.close();
  if (keys.size !== paths.length) throw new Error(`${paths.length - keys.size} keys are requested twice`);
  const widest = Math.max(...gaps);
  if (!(widest <= GAP_MAX)) throw new Error(`the keys are not spread evenly: widest gap ${widest} mean gaps`);
  return widest;
}

function widestGap(db: Database, table: string, keys: ReadonlySet<string>): number {
  const rows = db.query<{ id: Uint8Array }, []>(`select id from ${table} order by realm_id, id`);
  let position = 0;
  let last = 0;
  let widest = 0;
  let found = 0;
  for (const { id } of rows.iterate()) {
    position += 1;
    if (!keys.has(uuidText(id))) continue;
    widest = Math.max(widest, position - last);
    last = position;
    found += 1;
  }
  return Math.max(widest, position - last) / (position / found);
}
