import { connect } from '../src/store/sqlite/connection.ts';
import { knownMigrations } from '../src/store/sqlite/open.ts';
import { prepareBare } from './bare.ts';
import { lines, subjectAt, userAt } from './population.ts';

const USERS = 1_000;
/** Far from the numbers that stand in the database already. */
const FIRST_NEW = 10_000_000;

/**
 * Durable creates a second of the engine alone, for one caller: each commit is one link, its change, and its user's new
 * instant.
 */
export function bareCreates(path: string, seconds: number): number {
  const db = connect(path);
  try {
    db.run('pragma journal_mode = wal');
    for (const { sql } of knownMigrations()) db.run(sql);
    const prepare = prepareBare(db);
    const run = (line: string) => {
      for (const { statement, values } of prepare(line)) statement.run(...values);
    };
    db.transaction(() => {
      for (const group of lines(USERS)) for (const line of group.split('\n')) run(line);
    })();
    const touch = db.prepare(
      'update user_info set updated_at = ?, revision = ? where realm_id = ? and id = ?',
    );
    const begin = db.prepare('begin immediate');
    const commit = db.prepare('commit');
    const [, profile] = lines(0);
    const { id: oidc_profile_id, realm_id } = JSON.parse(profile ?? '{}');
    const end = performance.now() + seconds * 1_000;
    let count = 0;
    for (; performance.now() < end; count += 1) {
      const { user } = userAt(count % USERS);
      const line = JSON.stringify({
        type: 'user_authentication_oidc_profile_info',
        id: userAt(FIRST_NEW + count).oidcLink,
        realm_id,
        user_authentication_info_id: user,
        subject: subjectAt(FIRST_NEW + count),
        issuer: 'https://login.example.com/',
        oidc_profile_id,
        meta: { created_at: '2026-01-31T09:00:00.000Z', updated_at: '2026-01-31T09:00:00.000Z' },
      });
      begin.run();
      run(line);
      touch.run(count, 'fedcba9876543210', realm_id, user);
      commit.run();
    }
    return count / seconds;
  } finally {
    db.close();
  }
}
