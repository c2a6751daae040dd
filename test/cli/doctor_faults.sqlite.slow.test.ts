import type { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { NIL_UUID } from '../../src/domain/id.ts';
import { doctor, healthy, NOBODY, spoil } from '../support/doctor_report.ts';
import type { Planted } from '../support/service.ts';

interface Fault {
  readonly name: string;
  readonly check: string;
  readonly says: RegExp;
  readonly plant: (db: Database, first: Planted, second: Planted) => void;
  /** What is found must name this one. */
  readonly id?: (first: Planted, second: Planted) => string;
}

const FAULTS: readonly Fault[] = [
  {
    name: 'an orphaned link',
    check: 'orphans',
    says: /names a record of user_info that is not there/,
    plant: (db, { oidcLink }) =>
      db.run('update oidc_profile_info set user_id = ? where id = ?', [NOBODY, oidcLink]),
    id: ({ oidcLink }) => oidcLink,
  },
  {
    name: 'a link of a profile that is gone',
    check: 'orphans',
    says: /names a record of password_profile/,
    plant: (db, { passwordLink }) =>
      db.run('update password_profile_info set password_profile_id = ? where id = ?', [NOBODY, passwordLink]),
    id: ({ passwordLink }) => passwordLink,
  },
  {
    name: 'two links of one identity, under an index that was made again without being unique',
    check: 'duplicates',
    says: /2 rows share issuer and subject/,
    plant(db, { subject }, { oidcLink }) {
      db.run('drop index oidc_profile_info_identity');
      db.run('update oidc_profile_info set subject = ? where id = ?', [subject, oidcLink]);
      db.run('create index oidc_profile_info_identity on oidc_profile_info (realm_id, issuer, subject)');
    },
    id: ({ oidcLink }) => oidcLink,
  },
  {
    name: 'two links of one username, without their index',
    check: 'duplicates',
    says: /2 rows share password_profile_id and username/,
    plant(db, { username }, { passwordLink }) {
      db.run('drop index password_profile_info_username');
      db.run('update password_profile_info set username = ?1, username_key = lower(?1) where id = ?2', [
        username.toUpperCase(),
        passwordLink,
      ]);
    },
    id: (_, { passwordLink }) => passwordLink,
  },
  {
    name: 'two links of one identifier, in a table that was made again without its key',
    check: 'duplicates',
    says: /2 rows share id/,
    plant(db, { oidcLink }, { oidcLink: other }) {
      const made = db.query<{ sql: string }, []>(
        `select sql from sqlite_schema where name = 'oidc_profile_info'`,
      );
      const { sql } = made.get() ?? { sql: '' };
      db.run(sql.replace('oidc_profile_info', 'twins').replace('unique (realm_id, id)', 'check (true)'));
      db.run('insert into twins select * from oidc_profile_info');
      db.run('drop table oidc_profile_info');
      db.run('alter table twins rename to oidc_profile_info');
      db.run('update oidc_profile_info set id = ? where id = ?', [oidcLink, other]);
    },
    id: ({ oidcLink }) => oidcLink,
  },
  {
    name: 'an index that is missing',
    check: 'schema',
    says: /index password_profile_info_username is missing/,
    plant: (db) => db.run('drop index password_profile_info_username'),
  },
  {
    name: 'a username with another key',
    check: 'folded keys',
    says: /username_key is not the key of username/,
    plant: (db, { passwordLink }) =>
      db.run(`update password_profile_info set username_key = 'Other' where id = ?`, [passwordLink]),
    id: ({ passwordLink }) => passwordLink,
  },
  {
    name: 'a username whose key an older Unicode made',
    check: 'folded keys',
    says: /username_key is not the key of username, made with Unicode 1\.0/,
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
    says: /email_key is not the key of email/,
    plant: (db, { user }) => db.run(`update user_info set email = 'É@example.com' where id = ?`, [user]),
    id: ({ user }) => user,
  },
  {
    name: 'a part of a name without its key',
    check: 'folded keys',
    says: /family_name_key is not the key of family_name/,
    plant: (db, { user }) => db.run('update user_info set family_name_key = null where id = ?', [user]),
    id: ({ user }) => user,
  },
  {
    name: 'a key of a part of a name that is not there',
    check: 'folded keys',
    says: /middle_name_key is not the key of middle_name/,
    plant: (db, { user }) => db.run(`update user_info set middle_name_key = 'q' where id = ?`, [user]),
    id: ({ user }) => user,
  },
  {
    name: 'a subject whose checksum is another one',
    check: 'checksums',
    says: /subject_crc is not the checksum of subject/,
    plant: (db, { oidcLink }) =>
      db.run('update oidc_profile_info set subject_crc = subject_crc + 1 where id = ?', [oidcLink]),
    id: ({ oidcLink }) => oidcLink,
  },
  {
    name: 'a username whose checksum is not that of its key',
    check: 'checksums',
    says: /username_crc is not the checksum of username_key/,
    plant: (db, _, { passwordLink }) =>
      db.run('update password_profile_info set username_crc = 0 where id = ?', [passwordLink]),
    id: (_, { passwordLink }) => passwordLink,
  },
  {
    name: 'a purge that was begun and not ended',
    check: 'orphans',
    says: /a purge was begun and not ended: run authrealm purge for this user-authentication-info/,
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
    name: 'a clock behind its changes',
    check: 'changes',
    says: /the clock of the realm is at \d+, its last change at \d+/,
    plant: (db) => db.run('update realm_clock set seq = seq - 1'),
  },
  {
    name: 'a realm without its clock',
    check: 'changes',
    says: /the clock of the realm is at 0/,
    plant: (db) => db.run('delete from realm_clock'),
  },
  {
    name: 'a change that is missing in between',
    check: 'changes',
    says: /1 changes are missing in between/,
    plant: (db) => db.run('delete from change where seq = 3'),
  },
  {
    name: 'the first change missing',
    check: 'changes',
    says: /the first change is 2/,
    plant: (db) => db.run('delete from change where seq = 1'),
  },
  {
    name: 'a clock behind its acts',
    check: 'changes',
    says: /the clock of the installation is at 1, its last act at 3/,
    plant: (db) => db.run('update realm_clock set seq = 1 where realm_id = ?', [NIL_UUID]),
  },
  {
    name: 'an act that is missing',
    check: 'changes',
    says: /the first act is 2, not 1/,
    plant: (db) => db.run('delete from act where seq = 1'),
  },
  {
    name: 'a realm of a webhook target that is gone',
    check: 'orphans',
    says: /names a record of webhook that is not there/,
    plant: (db, { realm }) => db.run('insert into webhook_realm values (?, ?)', [NOBODY, realm]),
    id: () => NOBODY,
  },
  {
    name: 'how far a webhook target has come that is gone',
    check: 'orphans',
    says: /names a record of webhook that is not there/,
    plant: (db, { realm }) =>
      db.run('insert into webhook_progress values (?, ?, 1, 0, 0, 0, 0)', [NOBODY, realm]),
    id: () => NOBODY,
  },
  {
    name: 'a record that was never created',
    check: 'changes',
    says: /3 records, where the changes come to 2/,
    plant: (db) =>
      db.run(`insert into password_profile_info
        select 1, realm_id, user_id, '${NOBODY}', 'more', password_profile_id, null, null, 'more', unicode_version,
          username_crc, created_at, updated_at, revision from password_profile_info limit 1`),
  },
  {
    name: 'a record that was never deleted',
    check: 'changes',
    says: /1 records, where the changes come to 2/,
    plant: (db, { oidcLink }) => db.run('delete from oidc_profile_info where id = ?', [oidcLink]),
  },
  {
    name: 'a sealed value of another place',
    check: 'sealed values',
    says: /client_secret_sealed does not open/,
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
    says: /private_sealed does not open/,
    plant: (db) => db.run(`update signing_key set private_sealed = cast(private_sealed || x'00' as blob)`),
  },
  {
    name: 'a sealed value of one byte',
    check: 'sealed values',
    says: /client_secret_sealed does not open/,
    plant: (db) =>
      db.run(`update oidc_profile set client_secret_sealed = x'01' where client_secret_sealed is not null`),
  },
  {
    name: 'a secret of the log that does not open',
    check: 'sealed values',
    says: /sealed does not open/,
    plant: (db) => db.run(`update instance_secret set sealed = cast(sealed || x'00' as blob)`),
    id: () => 'log',
  },
  {
    name: 'no key that signs',
    check: 'signing keys',
    says: /no key signs/,
    plant: (db) => db.run('update signing_key set withdrawn_at = 1'),
  },
  {
    name: 'a client limited to a realm that is not there',
    check: 'clients',
    says: /is limited to a realm that is not there/,
    plant: (db) => db.run('update client_realm set realm_id = ?', [NOBODY]),
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
      const { path, first, second } = await healthy();
      spoil(path, (db) => work(db, first, second));
      const found = await doctor(path);
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
