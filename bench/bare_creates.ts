import { connectSqlite } from '../src/store/sqlite/connection.ts';
import { ISSUER, OIDC_PROFILE, REALM, subjectAt, userAt } from '../test/support/population.ts';
import { type BareInsert, prepareBare } from './bare.ts';

/**
 * Durable creates a second of the engine alone, one at a time: each commit is one link, its change, and its user's new
 * instant. A script of its own, so that it runs on the core the service has; on a database that `fillBare` filled. What is
 * written is made ready before the clock starts. Arguments: database, users in it, creates, number of the first one.
 */
const [path = '', users = '', creates = '', first = ''] = process.argv.slice(2);
const AT = '2026-01-31T09:00:00.000Z';

const db = connectSqlite(path);
const prepare = prepareBare(db, Number(first) * 2);
const touch = db.prepare('update user_info set updated_at = ?, revision = ? where realm_id = ? and id = ?');
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
