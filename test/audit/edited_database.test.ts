import { expect, setDefaultTimeout, test } from 'bun:test';
import { createClient } from '../../src/auth/clients/clients.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/service/open_database.ts';
import { freshDatabase } from '../support/database.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { createFixture } from '../support/service.ts';

/** Edits of a database by hand, each found by `audit verify --records`, or listed in SECURITY.md as not findable. */

setDefaultTimeout(300_000);

const ISSUED = { scopes: new Set(['realms:read']), realms: '*' } as Parameters<typeof createClient>[2];
const HASH = '$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$YW5vdGhlci1oYXNoLW9mLWFub3RoZXItcGFzcw';
const NEW_ID = '00000000-0000-4000-8000-000000000001';
const COPY = 'created_at, updated_at, revision';
const LOG_COLUMNS =
  'realm_id, event, record_id, revision, members, user_id, at, actor, request_id, address, detail, personal, tag';

const FOUND: readonly (readonly [name: string, sql: string])[] = [
  ['raise the scopes of a client', `update client set scopes = 'admin'`],
  ['limit a client to no realm', 'update client set all_realms = 0'],
  ['replace the digest of a secret', 'update client set secret_digest = (select sealed from keyring)'],
  [
    'add a previous secret',
    'update client set previous_digest = secret_digest, previous_expires_at = 99999999999999',
  ],
  ['rename a client', `update client set name = 'renamed'`],
  ['disable a client', 'update client set disabled_at = 1'],
  ['remove the code of a client', 'update client set mac = null'],
  [
    'insert a client',
    `insert into client (client_id, name, scopes, all_realms, secret_digest, ${COPY}, mac)
     select '${NEW_ID}', name, 'admin', 1, secret_digest, ${COPY}, mac from client`,
  ],
  [
    'give a client a realm',
    'insert into client_realm (client_id, realm_id) select client_id, realm_id from client, realm',
  ],
  ['replace a public key', `update signing_key set public_jwk = '{}'`],
  ['let a key sign from another time on', 'update signing_key set signs_from = 0'],
  [
    'insert a signing key',
    `insert into signing_key (kid, public_jwk, private_sealed, created_at, signs_from, mac)
     select '${NEW_ID}', public_jwk, private_sealed, created_at, signs_from, mac from signing_key`,
  ],
  [
    'insert a console link',
    `insert into console_link (digest, label, scopes, realms, expires_at) values ('x', 'x', 'admin', '*', 99999999999999)`,
  ],
  ['replace a password hash', `update password_profile_info set password_hash = '${HASH}'`],
  [
    'replace a password hash and remove its code',
    `update password_profile_info set password_hash = '${HASH}', password_hash_mac = null`,
  ],
  ['change a username', `update password_profile_info set username = 'mallory'`],
  ['change a subject', `update oidc_profile_info set subject = 'mallory'`],
  ['change the issuer of a link', `update oidc_profile_info set issuer = 'https://mallory.example/'`],
  [
    'change the revision of a link',
    `update oidc_profile_info set revision = '00000000000000000000000000000000'`,
  ],
  ['delete an OIDC link', 'delete from oidc_profile_info'],
  ['delete a password link', 'delete from password_profile_info'],
  [
    'insert a user',
    `insert into user_info (realm_id, id, name, email, creation_status, name_key, email_key, unicode_version, ${COPY})
     select realm_id, '${NEW_ID}', name, email, creation_status, name_key, email_key, unicode_version, ${COPY} from user_info`,
  ],
  ['rename a user', `update user_info set name = 'Mallory'`],
  ['change the e-mail address of a user', `update user_info set email = 'mallory@example.com'`],
  ['change the status of a user', `update user_info set creation_status = 'INCOMPLETE'`],
  ['change the revision of a user', `update user_info set revision = '00000000000000000000000000000000'`],
  ['rename a realm', `update realm set name = 'Mallory'`],
  ['change the redirect URIs of a realm', `update realm set redirect_uris = '["https://mallory.example/"]'`],
  ['change the client of an OIDC profile', `update oidc_profile set client_id = 'mallory'`],
  [
    'change the discovery URL of an OIDC profile',
    `update oidc_profile set discovery_url = 'https://mallory.example/'`,
  ],
  ['change the format of usernames', `update password_profile set username_format = 'email'`],
  ['change the actor of a log entry', `update log_entry set actor = 'mallory' where at is not null`],
  ['change the time of a log entry', 'update log_entry set at = at - 1 where at is not null'],
  ['remove the values of a log entry', 'update log_entry set detail = null'],
  ['delete the log of a realm', 'delete from log_entry'],
  [
    'insert a log entry',
    `insert into log_entry (seq, ${LOG_COLUMNS}) select max_seq + 1, ${LOG_COLUMNS}
     from log_entry, (select max(seq) as max_seq from log_entry) as last where seq = 1`,
  ],
  ['change an entry of the installation', `update act set actor = 'mallory'`],
  ['delete the log of the installation', 'delete from act'],
  ['move a clock', 'update realm_clock set seq = seq + 1'],
  ['move the start of a log', 'update realm_clock set anchor_seq = anchor_seq + 1'],
  ['delete the keys of personal values', 'delete from user_salt'],
  ['delete the proof of the master key', 'delete from keyring'],
];

/** The reasons are in SECURITY.md, "What it does not defend against". */
const NOT_FOUND: readonly (readonly [name: string, sql: string])[] = [
  ['change the time of creation of a record', 'update user_info set created_at = created_at - 1'],
  [
    'insert an erasure that did not happen',
    `insert into erasure (realm_id, user_id, at) select realm_id, '${NEW_ID}', 1 from realm`,
  ],
];

test('audit verify --records finds every edit by hand but those that SECURITY.md lists', async () => {
  const database = await freshDatabase();
  const db = await openDatabase(database.settings(), systemClock);
  await createFixture(db);
  await createClient(db.engine.access, 'client', ISSUED, systemClock);
  await db.engine.close();
  const verify = async (args: readonly string[]) => {
    const { code, stdout, stderr } = await runCommand([AUTHREALM, 'audit', 'verify', '--records', ...args]);
    return { code, stderr, isClean: /^clean$/m.test(stdout), stdout };
  };
  const clean = await verify(database.args);
  expect([clean.stdout.match(/^\d+ records compared.*$/m)?.[0], clean.stderr, clean.isClean]).toEqual([
    '6 records compared with the log; 0 not covered by it',
    '',
    true,
  ]);
  const results: (readonly [name: string, isFound: boolean, error: string])[] = [];
  for (const [name, sql] of [...FOUND, ...NOT_FOUND]) {
    const edited = await database.copy();
    const rows = await edited.tamper(sql);
    const { code, stderr } = await verify(edited.args);
    results.push([name, rows > 0 && code === 1, stderr]);
  }
  expect(results).toEqual([
    ...FOUND.map(([name]) => [name, true, ''] as const),
    ...NOT_FOUND.map(([name]) => [name, false, ''] as const),
  ]);
});
