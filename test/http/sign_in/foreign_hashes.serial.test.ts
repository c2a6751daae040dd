import { expect, test } from 'bun:test';
import { openSignerKeys } from '../../../src/access/keys/signer_keys.ts';
import { passwordHash } from '../../../src/model/imported_hash.ts';
import { realm } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { realmLines, runImport } from '../../support/import_fixtures.ts';
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

async function isVerified(place: readonly [realm: string, profile: string], typed: object): Promise<unknown> {
  const path = `/v2/authentication-realms/${place[0]}/password-profiles/${place[1]}/check`;
  const answer = await service.post(path, token, { data: { type: 'password_check', ...typed } }, END_USER);
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { data: { verified: unknown } }).data.verified;
}

test.each(SPELLINGS)('the stored spelling of %s has no signer key', (spelling) => {
  expect(passwordHash().parse(spelling)).toBe(STORED);
  expect(STORED).toStartWith('$scrypt$ln=14,r=8,p=1,k=204e621d2264a1a1$42xEC+ixf3L2lwc$');
});

test('a hash of Firebase is refused until its signer key is stored, and then imported and checked', async () => {
  const { lines, ids } = realmLines();
  const { username } = lines.name;
  const source = [lines.realm, lines.passwords, lines.user, { ...lines.name, password_hash: SPELLINGS[1] }];
  const refused = await runImport(db, source);
  expect([refused.counts.imported, refused.refusals]).toEqual([
    3,
    ['line 4: password_hash needs the signer key of its Firebase project: pass --firebase-config'],
  ]);
  const signerKeys = openSignerKeys(db.engine.access, db.keyring, systemClock);
  for (let twice = 0; twice < 2; twice += 1) await signerKeys.add(Buffer.from(FIREBASE.signerKey, 'base64'));
  expect((await runImport(db, source)).counts).toMatchObject({ imported: 1, unchanged: 3, refused: 0 });
  const profile = [ids.realm, ids.passwords] as const;
  expect(await isVerified(profile, { username, password: 'user2password' })).toBe(false);
  expect(await isVerified(profile, { username, password: FIREBASE.password })).toBe(true);
});

test('a password is checked with a hash of Firebase or Django over the API, without the signer key as a wrong one', async () => {
  const django = 'pbkdf2_sha256$1000$seasalt0123456789abcde$vOPse1Ih7LX2xChTias8oqCn3tPiZwR5MnF1G77jGVM=';
  for (const [hash, password, isRight] of [
    [passwordHash().parse(django), 'correct horse battery staple', true],
    [passwordHash().parse(django), 'correct horse battery stapler', false],
    [STORED, FIREBASE.password, true],
    [STORED.replace('k=204e', 'k=204f'), FIREBASE.password, false],
  ] as const) {
    const { profile, username } = await createPassword(db, REALM, { hash });
    expect(await isVerified([REALM, profile], { username, password })).toBe(isRight);
  }
});
