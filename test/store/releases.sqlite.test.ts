import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '../../src/platform/version.ts';
import { sqliteMigrations } from '../../src/store/sqlite/open.ts';
import { sqliteAt } from '../support/database.ts';
import { runDoctorOnFile } from '../support/doctor_report.ts';
import { AUTHREALM, runCommand, startCommand } from '../support/processes.ts';
import { verifyCleanRecords } from '../support/record_verification.ts';
import { copyReleaseDatabase, exportOf, findLinks, linesOf, urlOf } from '../support/release_database.ts';
import { freshFolder } from '../support/service.ts';

/** Every release keeps the databases and the code of all releases before it (scripts/write_release_fixture.ts). */

const RELEASES = join(import.meta.dir, '../fixtures/releases');
/** Its log has no values of records. */
const RELEASE_WITHOUT_VALUES = '0.1.0';

/**
 * The only password hash of each database counts as none: that of 0.1.0 has no MAC, which is verified once the secret of the log exists,
 * and that of 0.9.0 one of its link and hash alone.
 */
const forgedIn = (release: string) => (release === '0.1.0' ? [] : ['forged rows']);

/** The migrations that are newer than the database. */
async function migrationsSince(path: string) {
  const [found] = await sqliteAt(path).query<{ schema: number }>(
    'select max(version) as schema from migration',
  );
  return sqliteMigrations().filter(({ version }) => version > (found?.schema ?? 0));
}

const releases = readdirSync(RELEASES).sort();

test('the fixtures contain the database of this release and the code of every release', () => {
  expect(releases).toContain(VERSION);
  const hasCode = releases.map((release) => existsSync(join(RELEASES, release, 'code.tgz')));
  expect(hasCode).toEqual(releases.map(() => true));
});

for (const release of releases)
  describe(`the database of ${release}`, () => {
    const exported = exportOf(release);
    const lines = linesOf(release);

    test('doctor reports only pending migrations and a password hash for the database of an older release', async () => {
      const path = copyReleaseDatabase(release, freshFolder());
      const found = await runDoctorOnFile(path);
      const pending = await migrationsSince(path);
      expect(found.unhealthy).toEqual([...(pending.length > 0 ? ['migrations'] : []), ...forgedIn(release)]);
      expect(found.report('migrations').findings.map(({ says }) => says)).toEqual(
        pending.map(({ version, name }) => expect.stringContaining(`${version} ${name} is pending`)),
      );
    });

    test('the database of an older release is migrated, healthy but for its password hash, and exports every record unchanged', async () => {
      const path = copyReleaseDatabase(release, freshFolder());
      const database = ['--database', `sqlite:${path}`, '--migrate', 'auto'];
      const file = join(path, '..', 'again.jsonl');
      expect((await runCommand([AUTHREALM, 'export', file, ...database])).code).toBe(0);
      expect(readFileSync(file, 'utf8')).toBe(exported);
      expect(existsSync(`${path}.key`)).toBe(true);
      const found = await runDoctorOnFile(path);
      expect([found.unhealthy, found.report('integrity').unchecked]).toEqual([forgedIn(release), undefined]);
    });

    test('the database of an older release is served: its client gets a token and finds every link', async () => {
      const path = copyReleaseDatabase(release, freshFolder());
      const service = startCommand([AUTHREALM, 'serve', '--port', '0', '--database', `sqlite:${path}`]);
      const url = await urlOf(service);
      const headers = await findLinks(release, url);
      const word = await fetch(`${url}/v2/user-authentication-info/search`, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body: JSON.stringify({ filter: 'match(text,doe ja)' }),
      });
      const users = lines.filter(({ type }) => type === 'user_authentication_info');
      expect(((await word.json()) as { data: { id: string }[] }).data.map(({ id }) => id)).toEqual(
        users.map(({ id }) => id),
      );
      expect(await service.stop()).toBe(0);
      const { findings } = (await runDoctorOnFile(path)).report('forged rows');
      expect(findings.map(({ table }) => table)).toEqual(['password_profile_info']);
      await sqliteAt(path).tamper('update password_profile_info set password_hash = null');
      const verified = await verifyCleanRecords(sqliteAt(path));
      const hasValues = release !== RELEASE_WITHOUT_VALUES;
      expect(verified).toEqual({
        covered: hasValues ? lines.length : 0,
        notCovered: hasValues ? 0 : lines.length,
      });
    });
  });
