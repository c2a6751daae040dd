import { expect, test } from 'bun:test';
import { passwordHash } from '../../../src/model/imported_hash.ts';
import { decoyHash, hashKind, isCheckable } from '../../../src/model/password_hash.ts';
import { checkResult } from '../../../src/ops/workers/checker.ts';

const PASSWORD = 'correct horse battery staple';

/** Made by the programs themselves: Django 5.2, passlib 1.7, Spring Security 7.0, Dovecot 2.3. */
const HASHES = {
  'PBKDF2 of Django with SHA-256':
    'pbkdf2_sha256$1000$seasalt0123456789abcde$vOPse1Ih7LX2xChTias8oqCn3tPiZwR5MnF1G77jGVM=',
  'PBKDF2 of Django with SHA-1': 'pbkdf2_sha1$1000$seasalt0123456789abcde$xKxkrAqFEX1nkgKOjZMPvQbE7ms=',
  'scrypt of Django':
    'scrypt$16384$seasalt0123456789abcde$8$5$MoRUjYlLm8CW+YZLjOzSG2aTLdB3ixqHJZyIrqOpCDznwsnZHuH6gfdQOiZhQD/p3dwF2ZmF018SGLtZAFNizw==',
  'argon2 of Django':
    'argon2$argon2id$v=19$m=256,t=1,p=2$c2Vhc2FsdDAxMjM0NTY3ODlhYmNkZQ$ex2r+8FkOmKLdxuGXrnzhFDIz2fxGPLri7irrK174EY',
  'bcrypt of Django': 'bcrypt$$2b$04$OI/TgO81SaOTSBZcURGUGOPkiaiAVrgaLCoC1pl1wfQe4KMxdIXZ2',
  'PBKDF2 of passlib with SHA-1': '$pbkdf2$1000$....IHNhbHQgc2FsdA$bZvg6J294EynRB5MLKRD8he8hTs',
  'PBKDF2 of passlib with SHA-256':
    '$pbkdf2-sha256$1000$....IHNhbHQgc2FsdA$cabfnHekK0VBYanREubp1MdK0yUoM50OITVOcG9995M',
  'PBKDF2 of passlib with SHA-512':
    '$pbkdf2-sha512$1000$....IHNhbHQgc2FsdA$3ye6n/ldvOA9jph2ogGpZ5l7TDdrf4IqSmSx4PtlNE19X9V8pZDIB3PPhcvON9/YIEvmBDXiycn44NrXIbuzyw',
  'scrypt of passlib': '$scrypt$ln=10,r=8,p=1$++++IHNhbHQgc2FsdA$n1ziWlVE1gO+nlRyawJmPDK0hFzl9rNrZP5axfvF4Ws',
  'bcrypt of Spring': '{bcrypt}$2a$04$xhXqCn3Af5QbL.hNfIK.POq3RmWmT/Me4RU.Mdm/OQSwbQIbdCry6',
  'PBKDF2 of Spring 5.5':
    '{pbkdf2}cdb209e00b411959db9a0c7eebb009655a7a0dbdec3a3e38c1289e2bee47cf1f14554fb206ad8fcf',
  'PBKDF2 of Spring 5.8':
    '{pbkdf2@SpringSecurity_v5_8}6f2adf1cea4a3d4650380c4dab7a828a6c9890f8bf28e16ddc32e29e0ded78af05667c74f2b1e129d2f3d5f9d1586a9a',
  'scrypt of Spring 4.1':
    '{scrypt}$e0801$yQxoCnd8aZlDyu+JUC6AF+HYbcdpZifASb36mFeNReA6fbzrnbRQ4cw2KgWNNLkFFvts9VXbEtyxu8/IUZKouA==$22w1JWkXh2jUIXo20nor75t+xjGL8sfuxzkZrAgmIy4=',
  'scrypt of Spring 5.8':
    '{scrypt@SpringSecurity_v5_8}$100801$IUmMiXufiIEpfLL7e2agdg==$zKISxVbzjmW6tI5aRMWAi2Kp4wjb8VOu5jJoJzEIezY=',
  'argon2 of Spring':
    '{argon2@SpringSecurity_v5_8}$argon2id$v=19$m=256,t=1,p=1$4KohgclyRG9q7zwFdb+Vsg$NAMMxdis8KTnpw2NQtLejfHhIJ810ipQrk43geaSBU8',
  'argon2 of Dovecot':
    '{ARGON2ID}$argon2id$v=19$m=65536,t=3,p=1$zO7z9ikwoC/fqwoIf60ddw$jJn8ljvD94K7rJK9u4+uT0iUzqItNQBQIySugnTtWcA',
  'PBKDF2 of Dovecot': '{PBKDF2}$1$Obfy9P.fCjldq5TH$5000$bf04e906cfb2f7ab7ce24ead3f8362ee3dd0bdc2',
  'bcrypt of Dovecot': '{BLF-CRYPT}$2y$05$F4FoXN1a1uspy91luFRHYeHAa7Cy8eAT1UuCfklM4Xq9vwo1Fs8jC',
};

test.each(Object.entries(HASHES))('a password is checked with the imported hash: %s', (_name, exported) => {
  const hash = passwordHash().parse(exported);
  const request = { hash, isNormalised: false };
  expect(checkResult({ ...request, password: PASSWORD })).toEqual({ isRight: true, isCut: false });
  expect(checkResult({ ...request, password: `${PASSWORD}r` })).toEqual({ isRight: false, isCut: false });
});

test.each(Object.entries(HASHES))(
  'the stored spelling of an imported hash can be imported again: %s',
  (_name, exported) => {
    const hash = passwordHash().parse(exported);
    expect(passwordHash().parse(hash)).toBe(hash);
  },
);

/** Of the tests of Kratos (ory/kratos, hash/hash_comparator_test.go); the password is `test`. */
const KRATOS = [
  '$pbkdf2-sha256$i=100000,l=32$1jP+5Zxpxgtee/iPxGgOz0RfE9/KJuDElP1ley4VxXc$QJxzfvdbHYBpydCbHoFg3GJEqMFULwskiuqiJctoYpI',
  '$pbkdf2-sha512$i=100000,l=32$bdHBpn7OWOivJMVJypy2UqR0UnaD5prQXRZevj/05YU$+wArTfv1a+bNGO1iZrmEdVjhA+lL11wF4/IxpgYfPwc',
  '$scrypt$ln=16384,r=8,p=1$2npRo7P03Mt8keSoMbyD/tKFWyUzjiQf2svUaNDSrhA=$MiCzNcIplSMqSBrm4HckjYqYhaVPPjTARTzwB1cVNYE=',
];

test.each(KRATOS)('a password is checked with the hash of Kratos %s', (exported) => {
  const request = { hash: passwordHash().parse(exported), isNormalised: false };
  expect(checkResult({ ...request, password: 'test' }).isRight).toBe(true);
  expect(checkResult({ ...request, password: 'tests' }).isRight).toBe(false);
});

test.each(Object.entries(HASHES))('a decoy is of the kind of the imported hash: %s', (_name, exported) => {
  const hash = passwordHash().parse(exported);
  const decoy = decoyHash(hashKind(hash));
  expect(isCheckable(decoy)).toBe(true);
  expect(hashKind(decoy)).toBe(hashKind(hash));
  expect(checkResult({ hash: decoy, isNormalised: false, password: PASSWORD }).isRight).toBe(false);
});

test('parameters of argon2 in another order and padded base64 are the same hash', () => {
  const hash =
    '$argon2id$v=19$m=256,t=1,p=2$c2Vhc2FsdDAxMjM0NTY3ODlhYmNkZQ$ex2r+8FkOmKLdxuGXrnzhFDIz2fxGPLri7irrK174EY';
  const spelled = hash.replace('m=256,t=1,p=2', 'p=2,t=1,m=256').replace('YmNkZQ$', 'YmNkZQ==$').concat('=');
  expect(passwordHash().parse(spelled)).toBe(hash);
});

test('a PBKDF2 hash with the length of its key, and a scrypt hash with N, get the stored spelling', () => {
  const [, , , salt, key] = HASHES['PBKDF2 of passlib with SHA-256'].replaceAll('.', '+').split('$');
  const stored = `$pbkdf2-sha256$i=1000,l=32$${salt}$${key}`;
  for (const parameters of ['i=1000,l=32', 'l=32,i=1000', 'i=1000'])
    expect(passwordHash().parse(`$pbkdf2-sha256$${parameters}$${salt}$${key}`)).toBe(stored);
  const scrypt = HASHES['scrypt of passlib'];
  expect(passwordHash().parse(scrypt.replace('ln=10', 'ln=1024'))).toBe(scrypt);
});

const SALT = 'c29tZXNhbHQ';
const key = (bytes: number) => Buffer.alloc(bytes, 7).toString('base64').replace(/=+$/, '');

test.each([
  [`$pbkdf2-sha1$i=1500000,l=20$${SALT}$${key(20)}`, true],
  [`$pbkdf2-sha1$i=1500001,l=20$${SALT}$${key(20)}`, false],
  // Two blocks.
  [`$pbkdf2-sha1$i=750001,l=32$${SALT}$${key(32)}`, false],
  [`$pbkdf2-sha256$i=1500000,l=32$${SALT}$${key(32)}`, true],
  [`$pbkdf2-sha256$i=9999999,l=32$${SALT}$${key(32)}`, false],
  [`$pbkdf2-sha512$i=600000,l=64$${SALT}$${key(64)}`, true],
  [`$pbkdf2-sha512$i=600001,l=64$${SALT}$${key(64)}`, false],
  [`$pbkdf2-sha256$i=1000,l=15$${SALT}$${key(15)}`, false],
  [`$pbkdf2-md5$i=1000,l=16$${SALT}$${key(16)}`, false],
  [`$scrypt$ln=17,r=8,p=1$${SALT}$${key(32)}`, true],
  [`$scrypt$ln=17,r=8,p=2$${SALT}$${key(32)}`, false],
  [`$scrypt$ln=63,r=8,p=1$${SALT}$${key(32)}`, false],
  [`$scrypt$ln=15,r=1,p=1$${SALT}$${key(32)}`, true],
  [`$scrypt$ln=16,r=1,p=1$${SALT}$${key(32)}`, false],
  [`$scrypt$ln=1000,r=8,p=1$${SALT}$${key(32)}`, false],
  [`$scrypt$ln=14,p=1$${SALT}$${key(32)}`, false],
  [`{pbkdf2}${'0'.repeat(79)}`, false],
  [`{MD5}${key(16)}`, false],
  ['!', false],
  ['', false],
])('the hash %s is imported: %p', (hash, isIt) => {
  expect(passwordHash().safeParse(hash).success).toBe(isIt);
});
