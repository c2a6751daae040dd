import { expect, test } from 'bun:test';
import { openSignerKeys } from '../../../src/access/keys/signer_keys.ts';
import { passwordHash } from '../../../src/model/imported_hash.ts';
import { realm } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { runImport } from '../../support/import_fixtures.ts';
import { insertRecord, realmMembers, startService } from '../../support/service.ts';
import { createPassword, END_USER, signInTokenOf } from '../../support/sign_in.ts';

/** Passwords whose hashes other programs made (docs/guides/import-and-export.md#hashes-of-passwords). */

const service = await startService();
const { db } = service;
const REALM = systemClock.mintId();
await insertRecord(db, realm, [REALM], realmMembers);
const token = await signInTokenOf(service);

/** The example of Firebase's own program (github.com/firebase/scrypt, README.md). */
const FIREBASE = {
  password: 'user1password',
  signerKey: 'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==',
  salt: '42xEC+ixf3L2lw==',
  hash: 'lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
};
const SPELLINGS = [
  `$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=${FIREBASE.signerKey}$${FIREBASE.salt}$${FIREBASE.hash}`,
  `$firescrypt$ln=14,r=8,p=1$${FIREBASE.salt}$${FIREBASE.hash}$Bw==$${FIREBASE.signerKey}`,
];
const STORED = passwordHash().parse(SPELLINGS[0]);

async function isVerified(hash: string, password: string): Promise<unknown> {
  const { profile, username } = await createPassword(db, REALM, { hash });
  const path = `/v2/authentication-realms/${REALM}/password-profiles/${profile}/check`;
  const answer = await service.post(
    path,
    token,
    { data: { type: 'password_check', username, password } },
    END_USER,
  );
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { data: { verified: unknown } }).data.verified;
}

test.each(SPELLINGS)('the stored spelling of %s has no signer key', (spelling) => {
  expect(passwordHash().parse(spelling)).toBe(STORED);
  expect(STORED).toStartWith('$scrypt$ln=14,r=8,p=1,k=204e621d2264a1a1$42xEC+ixf3L2lwc$');
});

test('a password is checked with a hash of Firebase once the signer key is stored, and its line is imported then', async () => {
  const { profile } = await createPassword(db, REALM);
  const line = JSON.stringify({
    ...{ type: 'user_authentication_password_profile_info', id: systemClock.mintId(), realm_id: REALM },
    ...{ user_authentication_info_id: systemClock.mintId(), password_profile_id: profile },
    ...{ username: 'firebase@example.com', password_hash: SPELLINGS[0] },
  });
  expect((await runImport(db, [line])).refusals).toEqual([
    'line 1: password_hash needs the signer key of its Firebase project: pass --firebase-config',
  ]);
  expect(await isVerified(STORED, FIREBASE.password)).toBe(false);
  const signerKeys = openSignerKeys(db.engine.access, db.keyring, systemClock);
  for (let twice = 0; twice < 2; twice += 1) await signerKeys.add(Buffer.from(FIREBASE.signerKey, 'base64'));
  expect(await isVerified(STORED, FIREBASE.password)).toBe(true);
  expect(await isVerified(STORED, 'user2password')).toBe(false);
  // Its user is missing, which is the next thing to be looked at.
  expect((await runImport(db, [line])).refusals).not.toEqual([expect.stringContaining('signer key')]);
});

test('a password is checked with a hash of Django over the API, and a wrong one is wrong', async () => {
  const hash = passwordHash().parse(
    'pbkdf2_sha256$1000$seasalt0123456789abcde$vOPse1Ih7LX2xChTias8oqCn3tPiZwR5MnF1G77jGVM=',
  );
  expect(await isVerified(hash, 'correct horse battery staple')).toBe(true);
  expect(await isVerified(hash, 'correct horse battery stapler')).toBe(false);
});
