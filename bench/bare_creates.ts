import { user } from '../src/model/resources.ts';
import { SQLITE } from '../src/records/store/sqlite/dialect.ts';
import { connectSqlite } from '../src/sql/sqlite/connection.ts';
import { haveValues } from '../src/sql/tables/records.ts';
import { ISSUER, OIDC_PROFILE, REALM, subjectAt, userAt } from '../test/support/population.ts';
import { type BareInsert, prepareBare } from './bare_inserts.ts';

/**
 * Prints the durable creates per second of SQLite without the service, one at a time: each commit inserts one link and its
 * change, and updates the user's timestamp. It runs in a separate process, so that it can be pinned to the core of the
 * service, on a database that `fillBare` filled. All values are prepared before the clock starts. Arguments: database,
 * users in it, creates, number of the first user to create.
 */
const [path = '', users = '', creates = '', first = ''] = process.argv.slice(2);
const AT = '2026-01-31T09:00:00.000Z';

const db = connectSqlite(path);
const prepare = prepareBare(db, Number(first) * 2);
const touch = db.prepare(
  `update user_info set updated_at = ?, revision = ? where ${haveValues(user, ['realm_id', 'id'], SQLITE)}`,
);
const begin = db.prepare('begin immediate');
const commit = db.prepare('commit');

interface Ready {
  readonly user: string;
  readonly inserts: readonly BareInsert[];
}

const ready = Array.from({ length: Number(creates) }, (_, index): Ready => {
  const number = Number(first) + index;
  const { user } = userAt((number * 7_919) % Number(users));
  const line = {
    type: 'user_authentication_oidc_profile_info',
    id: userAt(number).oidcLink,
    realm_id: REALM,
    user_authentication_info_id: user,
    subject: subjectAt(number),
    issuer: ISSUER,
    oidc_profile_id: OIDC_PROFILE,
    meta: { created_at: AT, updated_at: AT },
  };
  return { user, inserts: prepare(JSON.stringify(line)) };
});

const start = performance.now();
for (const { user, inserts } of ready) {
  begin.run();
  for (const { statement, values } of inserts) statement.run(...values);
  touch.run(Date.parse(AT), 'fedcba9876543210', REALM, user);
  commit.run();
}
console.log(ready.length / ((performance.now() - start) / 1_000));
db.close();
