import { expect, test } from 'bun:test';
import { openSignerKeys } from '../../../src/access/keys/signer_keys.ts';
import { passwordHash } from '../../../src/model/imported_hash.ts';
import { type CheckRequest, hashKind } from '../../../src/model/password_hash.ts';
import { realm } from '../../../src/model/resources.ts';
import { foldedKey } from '../../../src/model/text/folded_key.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { checkResult } from '../../../src/ops/workers/checker.ts';
import { openSignInBudgets } from '../../../src/sign_in/budgets.ts';
import { openDecoys } from '../../../src/sign_in/decoys.ts';
import { openDeviceTokens } from '../../../src/sign_in/device_token.ts';
import { openPasswordCheck } from '../../../src/sign_in/password_check.ts';
import { openSignInQueue } from '../../../src/sign_in/queue.ts';
import { importCounts, realmLines, runImport } from '../../support/import_fixtures.ts';
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

/**
 * Rows of the table `credential` of Keycloak: its defaults before version 24, of 24 and since 25, and another choice of the administrator
 * (github.com/espoon-voltti/evaka, service/src/test/kotlin/fi/espoo/evaka/shared/auth/PasswordTest.kt).
 */
const KEYCLOAK = [
  {
    password: 'test123',
    credentialData: '{"hashIterations":27500,"algorithm":"pbkdf2-sha256","additionalParameters":{}}',
    secretData:
      '{"value":"9yUI9up7DA09THuasmN5Z9pN+X5GUvJZY3lnXZYNB/gsGBtL8PjHANnR/H1G3IhhipUr27sBNJ4eek7AMP5UBw==","salt":"VUBELKb6poajPUjlaK1zCQ==","additionalParameters":{}}',
    stored:
      '$pbkdf2-sha256$i=27500,l=64$VUBELKb6poajPUjlaK1zCQ$9yUI9up7DA09THuasmN5Z9pN+X5GUvJZY3lnXZYNB/gsGBtL8PjHANnR/H1G3IhhipUr27sBNJ4eek7AMP5UBw',
  },
  {
    password: 'testpassword',
    credentialData: '{"hashIterations":210000,"algorithm":"pbkdf2-sha512","additionalParameters":{}}',
    secretData:
      '{"value":"x4QqNb57CHVDsuIM+UMaOeryY7WsOGhxPFzjhEQgoisZ2hrviOSvuokCIXFXHkvBF47BLXDj2MA/g4vUBMuJcw==","salt":"IQU7tTvDbMtynBAFmSOrpA==","additionalParameters":{}}',
    stored:
      '$pbkdf2-sha512$i=210000,l=64$IQU7tTvDbMtynBAFmSOrpA$x4QqNb57CHVDsuIM+UMaOeryY7WsOGhxPFzjhEQgoisZ2hrviOSvuokCIXFXHkvBF47BLXDj2MA/g4vUBMuJcw',
  },
  {
    password: 'testpassword',
    credentialData:
      '{"hashIterations":5,"algorithm":"argon2","additionalParameters":{"hashLength":["32"],"memory":["7168"],"type":["id"],"version":["1.3"],"parallelism":["1"]}}',
    secretData:
      '{"value":"O7vS90g14jWr4ESbUpJ3KX5y1NMZcMgjuqPHrZ4Eq8U=","salt":"LgSKeCa5qZH6Dh0PE17AwQ==","additionalParameters":{}}',
    stored:
      '$argon2id$v=19$m=7168,t=5,p=1$LgSKeCa5qZH6Dh0PE17AwQ$O7vS90g14jWr4ESbUpJ3KX5y1NMZcMgjuqPHrZ4Eq8U',
  },
  {
    password: 'testpassword',
    credentialData: '{"hashIterations":600000,"algorithm":"pbkdf2-sha256","additionalParameters":{}}',
    secretData:
      '{"value":"uqz68HhH43ZYJhTWB1L/dudCRIhsud4Xx2NbeG/nOGs=","salt":"0tjU8miBns3EPuTh63LYUA==","additionalParameters":{}}',
    stored: '$pbkdf2-sha256$i=600000,l=32$0tjU8miBns3EPuTh63LYUA$uqz68HhH43ZYJhTWB1L/dudCRIhsud4Xx2NbeG/nOGs',
  },
];

/** A credential of Keycloak as docs/guides/import-and-export.md#hashes-of-passwords says. Each parameter is an array of one text. */
function keycloakHash(credentialData: string, secretData: string): string {
  const { algorithm, hashIterations, additionalParameters } = JSON.parse(credentialData);
  const { salt, value } = JSON.parse(secretData);
  if (algorithm !== 'argon2') return `$${algorithm}$i=${hashIterations}$${salt}$${value}`;
  const { type, memory, parallelism } = additionalParameters;
  return `$argon2${type}$v=19$m=${memory},t=${hashIterations},p=${parallelism}$${salt}$${value}`;
}

test.each(KEYCLOAK)(
  'a credential of Keycloak with $credentialData is imported as a PHC string, and its password is checked',
  async ({ password, credentialData, secretData, stored }) => {
    const { lines, ids } = realmLines();
    const { username } = lines.name;
    const named = { ...lines.name, password_hash: keycloakHash(credentialData, secretData) };
    const { counts } = await runImport(db, [lines.realm, lines.passwords, lines.user, named]);
    expect(counts).toEqual(importCounts(4, 0, 0, 0));
    const credential = await db.engine.credentials.find(ids.realm, ids.passwords, foldedKey(username));
    expect(credential?.hash).toBe(stored);
    const profile = [ids.realm, ids.passwords] as const;
    expect(await isVerified(profile, { username, password: `${password}4` })).toBe(false);
    expect(await isVerified(profile, { username, password })).toBe(true);
  },
);

test('a username that nobody has is compared with a hash of the cost and the signer key of those of Firebase', async () => {
  const { engine, keyring, logKeys: keys } = db;
  const { credentials } = engine;
  const signerKeys = openSignerKeys(engine.access, keyring, systemClock);
  await signerKeys.add(Buffer.from(FIREBASE.signerKey, 'base64'));
  const { profile, username } = await createPassword(db, REALM, { hash: STORED });
  const compared: CheckRequest[] = [];
  const check = openPasswordCheck({
    credentials,
    devices: openDeviceTokens(keys, systemClock),
    budgets: openSignInBudgets(engine.budgets, keys, systemClock),
    queue: openSignInQueue(systemClock.monotonic),
    decoys: openDecoys({ credentials, keys, cost: { memoryKib: 8_192, passes: 1 }, clock: systemClock }),
    findSignerKey: signerKeys.find,
    async compare(request) {
      compared.push(request);
      return checkResult(request);
    },
    rehash: () => undefined,
  });
  const guess = { realmId: REALM, profileId: profile, password: 'guess', clientId: 'shop' };
  for (const each of [username, 'nobody', 'nobody else']) {
    const request = { ...guess, username: each, address: undefined, deviceToken: undefined };
    expect(await check(request)).toEqual({ kind: 'wrong' });
  }
  const costs = compared.map(({ hash, ...request }) => ({ kind: hashKind(hash), ...request }));
  const ofFirebase = {
    kind: '$scrypt$ln=14,r=8,p=1,k=204e621d2264a1a1$',
    ...{ password: 'guess', isNormalised: false, signerKey: FIREBASE.signerKey },
  };
  expect(costs).toEqual([ofFirebase, ofFirebase, ofFirebase]);
});
