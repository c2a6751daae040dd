import { expect, setDefaultTimeout, test } from 'bun:test';
import { createClient, rotateSecret } from '../../src/access/clients/clients.ts';
import { rotateSigningKey, withdrawSigningKey } from '../../src/access/keys/signing.ts';
import { type OpenDatabase, openDatabase } from '../../src/app/open_database.ts';
import { NIL_UUID } from '../../src/model/id.ts';
import { createAuditEntry } from '../../src/model/log/audit_entry.ts';
import { changeOf } from '../../src/model/log/change.ts';
import { passwordProfileInfo } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { idText, realmText, storedId } from '../support/log_rows.ts';
import { runAuthrealm } from '../support/processes.ts';
import { createFixture, type Fixture, PASSWORD_HASH } from '../support/service.ts';
import { sqlLiteral } from '../support/tampered_logs.ts';
import { addTarget } from '../support/webhook_receivers.ts';

/** Edits of a database by hand, each found by `audit verify --records`, or listed in SECURITY.md as not findable. */

setDefaultTimeout(300_000);

const ISSUED = { scopes: new Set(['realms:read']), realms: '*' } as Parameters<typeof createClient>[2];
const HASH = '$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$YW5vdGhlci1oYXNoLW9mLWFub3RoZXItcGFzcw';
const NEW_ID = '00000000-0000-4000-8000-000000000001';
const ENGINE = (process.env.AUTHREALM_TEST_ENGINE ?? 'sqlite') === 'sqlite' ? 'sqlite' : 'postgres';
const STORED_ID = storedId(ENGINE, `'${NEW_ID}'`);
const COPY = 'created_at, updated_at, revision';
const LOG_COLUMNS =
  'realm_id, event, record_id, revision, members, user_id, at, actor, request_id, address, detail, personal, tag';

type Edit = readonly [name: string, ...statements: string[]];
type Findings = Readonly<Record<string, readonly Edit[]>>;

/** The edits by what is reported about them. */
const FOUND: Findings = {
  'delete it and create it again (client,': [
    ['raise the scopes of a client', `update client set scopes = 'admin'`],
    ['limit a client to no realm', 'update client set all_realms = 0'],
    ['replace the digest of a secret', 'update client set secret_digest = (select sealed from keyring)'],
    [
      'add a previous secret',
      'update client set previous_digest = secret_digest, previous_expires_at = 99999999999999',
    ],
    ['rename a client', `update client set name = 'renamed'`],
    ['disable a client', 'update client set disabled_at = 1'],
    ['remove the MAC of a client', 'update client set mac = null'],
    [
      'insert a client',
      `insert into client (client_id, name, scopes, all_realms, secret_digest, implicit, ${COPY}, mac)
     select '${NEW_ID}', name, 'admin', 1, secret_digest, implicit, ${COPY}, mac from client`,
    ],
  ],
  'set the realms of the client again (client_realm,': [
    [
      'give a client a realm',
      `insert into client_realm (client_id, realm_id)
       select client_id, ${idText(ENGINE, 'realm_id')} from client, realm`,
    ],
  ],
  'withdraw it (signing_key,': [
    ['replace a public key', `update signing_key set public_jwk = '{}'`],
    ['let a key sign from another time on', 'update signing_key set signs_from = 0'],
    [
      'insert a signing key',
      `insert into signing_key (kid, public_jwk, private_sealed, created_at, signs_from, mac)
     select '${NEW_ID}', public_jwk, private_sealed, created_at, signs_from, mac from signing_key where withdrawn_at is null`,
    ],
  ],
  'delete the row (console_link,': [
    [
      'insert a console link',
      `insert into console_link (digest, label, scopes, realms, created_at, expires_at) values ('x', 'x', 'admin', '*', 1, 99999999999999)`,
    ],
  ],
  'end it with "authrealm console sessions end" (console_session,': [
    [
      'insert a console session',
      `insert into console_session (session_id, actor, scopes, realms, rules, begun_at, renewed_at, ends_at)
     values ('x', 'console:x', 'admin', '*', '', 1, 99999999999999, 99999999999999)`,
    ],
  ],
  'set its password again (password_profile_info,': [
    ['replace a password hash', `update password_profile_info set password_hash = '${HASH}'`],
    [
      'replace a password hash and remove its MAC',
      `update password_profile_info set password_hash = '${HASH}', password_hash_mac = null`,
    ],
    ['put back the version of a password', `update password_profile_info set credential_version = 'older'`],
    ['move a username to another user', `update password_profile_info set user_id = ${STORED_ID}`],
  ],
  'username_key does not match the value it is computed from (password_profile_info,': [
    ['give a username the key of another one', `update password_profile_info set username_key = 'mallory'`],
  ],
  'words does not match the value it is computed from (user_info,': [
    ['hide a user from searches by words', `update user_info set words = 'mallory'`],
  ],
  'username is not as in the log (': [
    ['change a username', `update password_profile_info set username = 'mallory'`],
  ],
  'subject is not as in the log (': [
    ['change a subject', `update oidc_profile_info set subject = 'mallory'`],
  ],
  'issuer is not as in the log (': [
    ['change the issuer of a link', `update oidc_profile_info set issuer = 'https://mallory.example/'`],
  ],
  'its revision is not that of its newest log entry (oidc_profile_info,': [
    [
      'change the revision of a link',
      `update oidc_profile_info set revision = '00000000000000000000000000000000'`,
    ],
  ],
  'but it does not exist (oidc_profile_info,': [['delete a link', 'delete from oidc_profile_info']],
  'but it does not exist (password_profile_info,': [
    ['delete a username', 'delete from password_profile_info'],
  ],
  'no log entry records it (user_info,': [
    [
      'insert a user',
      `insert into user_info (realm_id, id, name, email, creation_status, email_vouched, enabled, name_key, email_key, unicode_version, ${COPY})
     select realm_id, ${STORED_ID}, name, email, creation_status, email_vouched, enabled, name_key, email_key, unicode_version, ${COPY} from user_info`,
    ],
  ],
  'name is not as in the log (user_info,': [['rename a user', `update user_info set name = 'Mallory'`]],
  'email is not as in the log (': [
    ['change the e-mail address of a user', `update user_info set email = 'mallory@example.com'`],
  ],
  'creation_status is not as in the log (': [
    ['change the status of a user', `update user_info set creation_status = 'INCOMPLETE'`],
  ],
  'enabled is not as in the log (': [['disable a user', 'update user_info set enabled = 0']],
  'its revision is not that of its newest log entry (user_info,': [
    ['change the revision of a user', `update user_info set revision = '00000000000000000000000000000000'`],
  ],
  'no log entry records it (realm,': [
    [
      'insert a realm',
      `insert into realm (realm_id, name, redirect_uris, duplicate_email_policy, preset, ${COPY})
     select ${STORED_ID}, 'Mallory', redirect_uris, duplicate_email_policy, preset, ${COPY} from realm`,
    ],
  ],
  'name is not as in the log (realm,': [['rename a realm', `update realm set name = 'Mallory'`]],
  'redirect_uris is not as in the log (': [
    [
      'change the redirect URIs of a realm',
      `update realm set redirect_uris = '["https://mallory.example/"]'`,
    ],
  ],
  'client_id is not as in the log (': [
    ['change the client of an OIDC profile', `update oidc_profile set client_id = 'mallory'`],
  ],
  'discovery_url is not as in the log (': [
    [
      'change the discovery URL of an OIDC profile',
      `update oidc_profile set discovery_url = 'https://mallory.example/'`,
    ],
  ],
  'username_format is not as in the log (': [
    ['change the format of usernames', `update password_profile set username_format = 'email'`],
  ],
  'entry 1: this entry, or one before it, was changed or inserted': [
    ['change the actor of a log entry', `update log_entry set actor = 'mallory' where at is not null`],
    ['change the time of a log entry', 'update log_entry set at = at - 1 where at is not null'],
    ['remove the values of a log entry', 'update log_entry set detail = null'],
    ['replace the values of a log entry by other bytes', 'update log_entry set detail = tag'],
  ],
  'but the last entry is 0: some were removed': [
    ['delete the log of a realm', 'delete from log_entry'],
    ['delete the log of the installation', 'delete from act'],
  ],
  'this entry is after the head of the log': [
    [
      'insert a log entry',
      `insert into log_entry (seq, ${LOG_COLUMNS}) select max_seq + 1, ${LOG_COLUMNS}
     from log_entry, (select max(seq) as max_seq from log_entry) as last where seq = 1`,
    ],
  ],
  'installation, entry 1: this entry, or one before it, was changed or inserted': [
    ['change an entry of the installation', `update act set actor = 'mallory'`],
  ],
  'this entry, or one before it, was changed': [
    [
      'replace the position in the entry of a log that began by an object',
      `update act set detail = '{"after":{"valueOf":1,"toString":1}}' where action = 'log.begun'`,
    ],
  ],
  'the log head is at this position, but the last entry is': [
    ['move a clock', 'update realm_clock set seq = seq + 1'],
  ],
  'the start of the log was moved or changed': [
    ['move the start of a log', 'update realm_clock set anchor_seq = anchor_seq + 1'],
  ],
  'the personal values of this entry cannot be decrypted': [
    ['delete the keys of personal values', 'delete from user_salt'],
  ],
  'delete it and create it again (webhook,': [
    ['redirect a webhook target', `update webhook set url = 'https://mallory.example/'`],
    ['let a webhook target receive records', 'update webhook set with_data = 1'],
  ],
  'the proof of the master key was removed': [['delete the proof of the master key', 'delete from keyring']],
};

/** Stores the values of log entries as the hexadecimal digits of their bytes. The tags cover bytes. */
function storeDigits(digitsOf: string): Edit {
  return [
    'store the values of log entries as texts',
    'alter table log_entry rename column detail to packed',
    'alter table log_entry add column detail text',
    `update log_entry set detail = ${digitsOf} where packed is not null`,
    'alter table log_entry drop column packed',
  ];
}

const CHANGED_ENTRY = 'this entry, or one before it, was changed or inserted';

const FOUND_IN_POSTGRES: Findings = { [CHANGED_ENTRY]: [storeDigits(`encode(packed, 'hex')`)] };

/** An ID with a byte more, which only SQLite stores. */
const byteMore = (column: string): string => `cast(${column} || x'07' as blob)`;

/** Lookups in SQLite compare hashes as well. */
const FOUND_IN_SQLITE: Findings = {
  [CHANGED_ENTRY]: [
    storeDigits('lower(hex(packed))'),
    ['lengthen the user of a log entry', `update log_entry set user_id = ${byteMore('user_id')}`],
  ],
  'no log entry records it (oidc_profile_info,': [
    ['lengthen the ID of a link', `update oidc_profile_info set id = ${byteMore('id')}`],
    ['cut the ID of a link', 'update oidc_profile_info set id = substr(id, 1, 15)'],
  ],
  'entries, but its head counts': [
    [
      'give a realm another number',
      `update realm_clock set number = number + 1000 where realm_id <> '${NIL_UUID}'`,
    ],
  ],
  'slot does not match the value it is computed from (realm,': [
    ['hide a realm from lookups by its number', 'update realm set slot = slot + 1000'],
  ],
  'set its password again (password_profile_info,': [
    ['lengthen the ID of a username', `update password_profile_info set id = ${byteMore('id')}`],
  ],
  'username_crc does not match the value it is computed from (password_profile_info,': [
    ['hide a username from lookups by its hash', 'update password_profile_info set username_crc = 1'],
  ],
  'subject_crc does not match the value it is computed from (oidc_profile_info,': [
    ['hide a subject from lookups by its hash', 'update oidc_profile_info set subject_crc = 1'],
  ],
};

/** The reasons are in SECURITY.md, "What it does not defend against". */
const NOT_FOUND: readonly Edit[] = [
  ['change the time of creation of a record', 'update user_info set created_at = created_at - 1'],
  ['change the time of the last change of a record', 'update user_info set updated_at = updated_at - 1'],
  [
    'insert an erasure that did not happen',
    `insert into erasure (realm_id, user_id, at) select ${realmText(ENGINE, 'user_info')}, '${NEW_ID}', 1 from user_info`,
  ],
  ['delete the revocation of a token', 'delete from revoked_token'],
  ['delete a client', 'delete from client'],
  ['delete a webhook target', 'delete from webhook'],
  ['delete a signing key', 'delete from signing_key where withdrawn_at is not null'],
];

type Row = Readonly<Record<string, string | number | Uint8Array | null>>;

/** Writes an earlier state of a row, with its MAC. */
function restoreRow(database: TestDatabase, table: string, id: string, row: Row = {}): string {
  const values = Object.entries(row).map(([name, value]) => `${name} = ${sqlLiteral(database, value, name)}`);
  return `update ${table} set ${values.join(', ')} where ${id} = ${sqlLiteral(database, row[id] ?? null, id)}`;
}

/** Changes a client, a signing key and a password hash. Returns the edits that put their earlier states back. */
async function changeRows(db: OpenDatabase, database: TestDatabase, fixture: Fixture) {
  const { access, records } = db.engine;
  const { client } = await createClient(access, 'client', ISSUED, systemClock);
  const { kid } = await rotateSigningKey(access, db.keyring, systemClock);
  const states = [
    ['a client before the rotation of its secret', 'client', 'client_id', '*', client.clientId],
    ['a signing key before its withdrawal', 'signing_key', 'kid', '*', kid],
    [
      'a password hash before its change',
      'password_profile_info',
      'id',
      'id, password_hash, password_hash_mac, credential_version',
      fixture.passwordLink,
    ],
  ] as const;
  const edits: Edit[] = [];
  for (const [name, table = '', id = '', columns = '', value = ''] of states) {
    const [row] = await database.query<Row>(
      `select ${columns} from ${table} where ${id} = ${id === 'id' ? storedId(ENGINE, '?') : '?'}`,
      value,
    );
    edits.push([`put back ${name}`, restoreRow(database, table, id, row)]);
  }
  await rotateSecret(access, client.clientId, { overlapMs: 0 }, systemClock);
  await withdrawSigningKey(kid, access, db.keyring, systemClock);
  const key = [fixture.realm, fixture.user, fixture.passwordLink] as const;
  const patch = {
    members: { password_hash: PASSWORD_HASH.replace('c2FsdHNhbHRzYWx0', 'b3RoZXJzYWx0c2FsdA') },
    revision: systemClock.mintRevision(),
    at: systemClock.now(),
  };
  const origin = { actor: 'test', requestId: undefined, address: undefined, at: patch.at };
  const change = changeOf(
    passwordProfileInfo,
    'updated',
    { key, revision: patch.revision, members: ['password_hash'] },
    origin,
  );
  const result = await records.commit([{ op: 'patch', resource: passwordProfileInfo, key, patch, change }]);
  expect(result).toMatchObject({ kind: 'written' });
  return edits;
}

async function createRows(database: TestDatabase) {
  const settings = database.settings();
  const db = await openDatabase(settings, systemClock);
  const edits = await changeRows(db, database, await createFixture(db));
  await addTarget({ db, settings }, 'https://receiver.example/');
  await db.engine.access.revokeToken(
    { jti: NEW_ID, clientId: 'client', expiresAt: 99_999_999_999_999 },
    createAuditEntry('token.revoked', { object: NEW_ID, detail: {} }, systemClock),
  );
  await db.engine.close();
  return edits;
}

const VERIFY = ['audit', 'verify', '--records'];

test('audit verify --records finds every edit by hand but those that SECURITY.md lists', async () => {
  const database = await freshDatabase();
  const notFound = [...NOT_FOUND, ...(await createRows(database))];
  const clean = await runAuthrealm([...VERIFY, ...database.args]);
  expect([clean.stdout.match(/^\d+ records compared.*$/m)?.[0], clean.stderr, clean.code]).toEqual([
    '6 records compared with the log; 0 not covered by it',
    '',
    0,
  ]);
  const results: object[] = [];
  const expected: object[] = [];
  const { engine } = database.address;
  const findings = [FOUND, engine === 'sqlite' ? FOUND_IN_SQLITE : FOUND_IN_POSTGRES];
  const found = findings
    .flatMap(Object.entries<readonly Edit[]>)
    .flatMap(([finding, edits]) => edits.map((edit) => ({ finding, edit })));
  for (const { finding, edit } of [...found, ...notFound.map((each) => ({ finding: 'clean', edit: each }))]) {
    const [name, ...statements] = edit;
    const edited = await database.copy();
    let rows = 0;
    for (const sql of statements) rows += await edited.tamper(sql);
    results.push({ name, isEdited: rows > 0, ...(await runAuthrealm([...VERIFY, ...edited.args])) });
    const says = finding === 'clean' ? expect.stringMatching(/^clean$/m) : expect.stringContaining(finding);
    expected.push({ name, isEdited: true, code: finding === 'clean' ? 0 : 1, stdout: says, stderr: '' });
  }
  expect(results).toEqual(expected);
});
