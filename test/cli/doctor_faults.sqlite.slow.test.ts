import type { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { createHealthyFile, runDoctorOnFile, tamperFile, UNKNOWN_ID } from '../support/doctor_report.ts';
import type { Fixture } from '../support/service.ts';

interface Fault {
  readonly name: string;
  readonly check: string;
  readonly says: RegExp;
  readonly inject: (db: Database, first: Fixture, second: Fixture) => void;
  /** The record that a finding must name. */
  readonly id?: (first: Fixture, second: Fixture) => string;
}

const FAULTS: readonly Fault[] = [
  {
    name: 'a missing index',
    check: 'schema',
    says: /index password_profile_info_username is missing/,
    inject: (db) => db.run('drop index password_profile_info_username'),
  },
  {
    name: 'a row that violates a foreign key',
    check: 'integrity',
    says: /^1 rows of webhook_progress reference a row of webhook that does not exist$/,
    inject: (db, { realm }) =>
      db.run('insert into webhook_progress values (?, ?, 0, 0, 0, 0, 0)', [UNKNOWN_ID, realm]),
  },
  {
    name: 'a value that was sealed for another row',
    check: 'sealed values',
    says: /client_secret_sealed cannot be decrypted/,
    inject: (db, { oidcProfile: id }) =>
      db.run(
        `update oidc_profile set client_secret_sealed =
           (select client_secret_sealed from oidc_profile where client_secret_sealed is not null) where id = ?`,
        [id],
      ),
    id: ({ oidcProfile: id }) => id,
  },
  {
    name: 'a signing key that does not decrypt',
    check: 'sealed values',
    says: /private_sealed cannot be decrypted/,
    inject: (db) => db.run(`update signing_key set private_sealed = cast(private_sealed || x'00' as blob)`),
  },
  {
    name: 'a sealed value of one byte',
    check: 'sealed values',
    says: /client_secret_sealed cannot be decrypted/,
    inject: (db) =>
      db.run(`update oidc_profile set client_secret_sealed = x'01' where client_secret_sealed is not null`),
  },
  {
    name: 'a log secret that does not decrypt',
    check: 'sealed values',
    says: /sealed cannot be decrypted/,
    inject: (db) => db.run(`update instance_secret set sealed = cast(sealed || x'00' as blob)`),
    id: () => 'log',
  },
  {
    name: 'the absence of an active signing key',
    check: 'signing keys',
    says: /no signing key is active/,
    inject: (db) => db.run('update signing_key set withdrawn_at = 1'),
  },
  {
    name: 'an index that is no longer unique',
    check: 'schema',
    says: /index oidc_profile_info_subject is not as this program creates it/,
    inject(db) {
      db.run('drop index oidc_profile_info_subject');
      db.run('create index oidc_profile_info_subject on oidc_profile_info (realm_id, issuer, subject)');
    },
  },
  {
    name: 'a newer schema',
    check: 'migrations',
    says: /schema 900 is newer than this program: install authrealm 9\.9\.9/,
    inject: (db) =>
      db.run(
        `insert into migration (version, name, applied_at, program_version, serves_from) values (900, 'later', 1, '9.9.9', 900)`,
      ),
  },
  {
    name: 'a pending migration',
    check: 'migrations',
    says: /directory is pending/,
    inject: (db) => db.run('delete from migration where version = 1'),
  },
];

describe('faults in a SQLite database', () => {
  for (const { name, check, says, inject: work, id } of FAULTS) {
    test(`doctor finds ${name} in a SQLite database`, async () => {
      const { path, first, second } = await createHealthyFile();
      tamperFile(path, (db) => work(db, first, second));
      const found = await runDoctorOnFile(path);
      expect([found.code, found.healthy]).toEqual([1, false]);
      const { findings, total } = found.report(check);
      const matching = findings.filter((finding) => says.test(finding.says));
      expect([findings, matching.length > 0, total > 0]).toEqual([findings, true, true]);
      if (id) expect(matching.flatMap(({ ids = [] }) => ids)).toContain(id(first, second));
      for (const value of [first.subject, first.username, second.username, 'jane@example.com', 'Jane Doe'])
        expect(found.text).not.toContain(value);
    });
  }
});
