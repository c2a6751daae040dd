import { scryptSync } from 'node:crypto';
import { AT, type Files, type ForeignExport, ISSUER, login, PASSWORD, text } from './foreign_export_parts.ts';

/** A hash of better-auth, which reads the digits of the salt as text. */
function scrypt(password: string): string {
  const salt = '00112233445566778899aabbccddeeff';
  const cost = { N: 16_384, r: 16, p: 1, maxmem: 64 * 1024 * 1024 };
  return `${salt}:${scryptSync(password.normalize('NFKC'), salt, 64, cost).toString('hex')}`;
}

export function betterAuth(): [Files, ForeignExport] {
  // Typed with a ligature, which NFKC replaces.
  const ligature = 'correct horse battery \ufb01sh';
  const id = (number: number) => `user${number}AbCdEfGhIjKlMnOpQrStUvWxYz0`;
  const credential = (number: number, password = PASSWORD) => ({
    ...{ providerId: 'credential', accountId: id(number), userId: id(number), password: scrypt(password) },
  });
  const link = (providerId: string, accountId: string) => ({
    ...{ providerId, accountId, accessToken: 'of the provider', scope: 'openid', password: null },
  });
  const user = (number: number, name: string, accounts: readonly object[] | null, more: object = {}) => ({
    ...{ id: id(number), name, email: `${name.toLowerCase()}.better-auth@example.com`, emailVerified: true },
    ...{ image: null, createdAt: AT, updatedAt: AT, role: null, banned: false, banReason: null },
    ...{ banExpires: null, accounts, ...more },
  });
  const subject = '110000000000000000008';
  return [
    {
      'better_auth/rows.ndjson': text(
        user(1, 'Jane', [credential(1), link('google', subject)], { role: 'admin' }),
        // As SQLite has them.
        user(2, 'John', [credential(2)], { banned: 1, emailVerified: 0, banReason: 'spam' }),
        user(3, 'Joan', [credential(3)], { banned: true, banExpires: '2999-01-01T00:00:00+00:00' }),
        user(4, 'Kim', [link('github', '583231')], { banned: true, banExpires: AT }),
        user(5, 'Ann', [credential(5, ligature)], { username: 'ann', banned: true, banExpires: AT }),
        user(6, 'Lee', null),
      ),
    },
    {
      ...{ system: 'better_auth', files: ['better_auth/rows.ndjson'], lines: 12 },
      ...{ args: ['--issuer', ISSUER], importArgs: [] },
      report: `converted: users 6, usernames 5, passwords 5, links 1
dropped: banReason 1, link of github without --issuer 1, role 1, updatedAt 6
`,
      passwords: [
        login('jane.better-auth@example.com'),
        login('ann.better-auth@example.com', ligature),
        login('ann', ligature),
      ],
      disabled: [login('john.better-auth@example.com'), login('joan.better-auth@example.com')],
      subjects: [subject],
    },
  ];
}
