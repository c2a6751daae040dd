import type { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { createHealthyFile, runDoctorOnFile, tamperFile, UNKNOWN_ID } from '../support/doctor_report.ts';
import type { Fixture } from '../support/service.ts';

interface Fault {
  readonly name: string;
  readonly check: string;
  readonly says: RegExp;
  readonly plant: (db: Database, first: Fixture, second: Fixture) => void;
  /** What is found must name this one. */
  readonly id?: (first: Fixture, second: Fixture) => string;
}

const FAULTS: readonly Fault[] = [
  {
    name: 'an index that is missing',
    check: 'schema',
    says: /index password_profile_info_username is missing/,
    plant: (db) => db.run('drop index password_profile_info_username'),
  },
  {
    name: 'a username with another key',
    check: 'folded keys',
    says: /username_key does not match username/,
    plant: (db, { passwordLink }) =>
      db.run(`update password_profile_info set username_key = 'Other' where id = ?`, [passwordLink]),
    id: ({ passwordLink }) => passwordLink,
  },
  {
    name: 'a username whose key an older Unicode made',
    check: 'folded keys',
    says: /username_key does not match username; it was computed with Unicode 1\.0/,
    plant: (db, _, { passwordLink }) =>
      db.run(
        `update password_profile_info set username_key = lower(username), unicode_version = '1.0' where id = ?`,
        [passwordLink],
      ),
    id: (_, { passwordLink }) => passwordLink,
  },
  {
    name: 'an e-mail address with another key',
    check: 'folded keys',
    says: /email_key does not match email/,
    plant: (db, { user }) => db.run(`update user_info set email = 'É@example.com' where id = ?`, [user]),
    id: ({ user }) => user,
  },
  {
    name: 'a part of a name without its key',
    check: 'folded keys',
    says: /family_name_key does not match family_name/,
    plant: (db, { user }) => db.run('update user_info set family_name_key = null where id = ?', [user]),
    id: ({ user }) => user,
  },
  {
    name: 'a key of a part of a name that is not there',
    check: 'folded keys',
    says: /middle_name_key does not match middle_name/,
    plant: (db, { user }) => db.run(`update user_info set middle_name_key = 'q' where id = ?`, [user]),
    id: ({ user }) => user,
  },
  {
    name: 'a purge that was started and not completed',
    check: 'purges',
    says: /a purge was started but not completed: run "authrealm purge" for this user-authentication-info/,
    plant: (db, { realm, user }) =>
      db.run(`insert into purge values (?, ?, 'user-authentication-info', 1)`, [realm, user]),
    id: ({ user }) => user,
  },
  ...['https://login.example.com', 'https://LOGIN.example.com/', 'https://login.example.com:443/'].map(
    (issuer): Fault => ({
      name: `an issuer spelled ${issuer}`,
      check: 'issuers',
      says: /differ only by final slash, host case or default port/,
      plant: (db, { oidcLink }) =>
        db.run('update oidc_profile_info set issuer = ? where id = ?', [issuer, oidcLink]),
      id: ({ oidcLink }) => oidcLink,
    }),
  ),
  {
    name: 'a profile that spells the issuer of its links another way',
    check: 'issuers',
    says: /\(2 in oidc_profile_info\).*\(1 in oidc_profile\)|\(1 in oidc_profile\).*\(2 in oidc_profile_info\)/,
    plant: (db, { oidcProfile: id }) =>
      db.run(`update oidc_profile set issuer = 'https://login.example.com' where id = ?`, [id]),
    id: ({ oidcProfile: id }) => id,
  },
  {
    name: 'a row that a connection without foreign keys left',
    check: 'integrity',
    says: /^1 rows of webhook_realm reference a row of webhook that does not exist$/,
    plant: (db, { realm }) => db.run('insert into webhook_realm values (?, ?)', [UNKNOWN_ID, realm]),
  },
  {
    name: 'a record that was never created',
    check: 'changes',
    says: /3 records are stored, but the logged changes add up to 2/,
    plant: (db) =>
      db.run(`insert into password_profile_info
        select 1, realm_id, user_id, '${UNKNOWN_ID}', 'more', password_profile_id, null, null, 'more', unicode_version,
          username_crc, created_at, updated_at, revision from password_profile_info limit 1`),
  },
  {
    name: 'a record that was never deleted',
    check: 'changes',
    says: /1 records are stored, but the logged changes add up to 2/,
    plant: (db, { oidcLink }) => db.run('delete from oidc_profile_info where id = ?', [oidcLink]),
  },
  {
    name: 'a sealed value of another place',
    check: 'sealed values',
    says: /client_secret_sealed does not decrypt/,
    plant: (db, { oidcProfile: id }) =>
      db.run(
        `update oidc_profile set client_secret_sealed =
           (select client_secret_sealed from oidc_profile where client_secret_sealed is not null) where id = ?`,
        [id],
      ),
    id: ({ oidcProfile: id }) => id,
  },
  {
    name: 'a signing key that does not open',
    check: 'sealed values',
    says: /private_sealed does not decrypt/,
    plant: (db) => db.run(`update signing_key set private_sealed = cast(private_sealed || x'00' as blob)`),
  },
  {
    name: 'a sealed value of one byte',
    check: 'sealed values',
    says: /client_secret_sealed does not decrypt/,
    plant: (db) =>
      db.run(`update oidc_profile set client_secret_sealed = x'01' where client_secret_sealed is not null`),
  },
  {
    name: 'a secret of the log that does not open',
    check: 'sealed values',
    says: /sealed does not decrypt/,
    plant: (db) => db.run(`update instance_secret set sealed = cast(sealed || x'00' as blob)`),
    id: () => 'log',
  },
  {
    name: 'no key that signs',
    check: 'signing keys',
    says: /no signing key is active/,
    plant: (db) => db.run('update signing_key set withdrawn_at = 1'),
  },
  {
    name: 'a client limited to a realm that is not there',
    check: 'clients',
    says: /is limited to a realm that does not exist/,
    plant: (db) => db.run('update client_realm set realm_id = ?', [UNKNOWN_ID]),
  },
  {
    name: 'an index that is not unique any more',
    check: 'schema',
    says: /index oidc_profile_info_identity is not as this program creates it/,
    plant(db) {
      db.run('drop index oidc_profile_info_identity');
      db.run('create index oidc_profile_info_identity on oidc_profile_info (realm_id, issuer, subject)');
    },
  },
  {
    name: 'a newer schema',
    check: 'migrations',
    says: /schema 900 is newer than this program: install authrealm 9\.9\.9/,
    plant: (db) =>
      db.run(
        `insert into migration (version, name, applied_at, program_version) values (900, 'later', 1, '9.9.9')`,
      ),
  },
  {
    name: 'a migration that is pending',
    check: 'migrations',
    says: /directory is pending/,
    plant: (db) => db.run('delete from migration where version = 1'),
  },
];

describe('a planted fault is found:', () => {
  for (const { name, check, says, plant: work, id } of FAULTS) {
    test(name, async () => {
      const { path, first, second } = await createHealthyFile();
      tamperFile(path, (db) => work(db, first, second));
      const found = await runDoctorOnFile(path);
      expect([found.code, found.healthy]).toEqual([1, false]);
      const { findings, total } = found.report(check);
      const fitting = findings.filter((finding) => says.test(finding.says));
      expect([findings, fitting.length > 0, total > 0]).toEqual([findings, true, true]);
      if (id) expect(fitting.flatMap(({ ids = [] }) => ids)).toContain(id(first, second));
      for (const value of [first.subject, first.username, second.username, 'jane@example.com', 'Jane Doe'])
        expect(found.text).not.toContain(value);
    });
  }
});
