import { Database } from 'bun:sqlite';

const GAP_MAX = 1.5;

/**
 * Makes sure that the keys asked for lie evenly over the whole of both tables, in the order the rows lie in: a cluster
 * of hot pages flatters. Answers the widest gap between two neighbours, in mean gaps; throws where it is too wide or a
 * key is not there.
 */
export function assertSpread(path: string, paths: readonly string[]): number {
  const db = new Database(path, { readonly: true });
  const asked = new Set(paths.map((each) => each.slice(each.lastIndexOf('/') + 1)));
  const gaps = ['oidc_profile_info', 'password_profile_info'].map((table) => widestGap(db, table, asked));
  db.close();
  if (asked.size !== paths.length) throw new Error(`${paths.length - asked.size} keys are asked for twice`);
  const widest = Math.max(...gaps);
  if (!(widest <= GAP_MAX)) throw new Error(`the keys are not spread evenly: widest gap ${widest} mean gaps`);
  return widest;
}

function widestGap(db: Database, table: string, asked: ReadonlySet<string>): number {
  const rows = db.query<{ id: string }, []>(`select id from ${table} order by realm_id, id`);
  let position = 0;
  let last = 0;
  let widest = 0;
  let found = 0;
  for (const { id } of rows.iterate()) {
    position += 1;
    if (!asked.has(id)) continue;
    widest = Math.max(widest, position - last);
    last = position;
    found += 1;
  }
  return Math.max(widest, position - last) / (position / found);
}
