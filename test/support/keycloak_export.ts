import { pbkdf2Sync } from 'node:crypto';
import {
  AT,
  argon2,
  type Files,
  type ForeignExport,
  ISSUER,
  login,
  PASSWORD,
  pretty,
} from './foreign_export_parts.ts';

/** The password `PASSWORD` as Keycloak stores it: the secret part and the parameters as JSON in texts. */
function pbkdf2(digest: string, hashIterations: number, algorithm = `pbkdf2-${digest}`): object {
  const salt = Buffer.from('sixteen bytes of');
  const value = pbkdf2Sync(PASSWORD, salt, hashIterations, 64, digest).toString('base64');
  return password(
    { value, salt: salt.toString('base64') },
    { hashIterations, algorithm, additionalParameters: {} },
  );
}

function argon2Password(): object {
  const [, , , , salt = '', value = ''] = argon2(7168, 5).split('$');
  const padded = (base64: string) => Buffer.from(base64, 'base64').toString('base64');
  const parameters = { hashLength: ['32'], memory: ['7168'], type: ['id'], version: ['1.3'] };
  return password(
    { value: padded(value), salt: padded(salt) },
    {
      ...{ hashIterations: 5, algorithm: 'argon2' },
      additionalParameters: { ...parameters, parallelism: ['1'] },
    },
  );
}

const password = (secret: object, credential: object) => ({
  ...{ type: 'password', secretData: JSON.stringify({ ...secret, additionalParameters: {} }) },
  credentialData: JSON.stringify(credential),
});

const user = (number: number, username: string, more: object) => ({
  id: `00000000-0000-4000-8000-00000000000${number}`,
  ...{ createdTimestamp: Date.parse(AT), username, enabled: true, totp: false, emailVerified: true },
  ...{ credentials: [], disableableCredentialTypes: [], requiredActions: [], notBefore: 0, groups: [] },
  ...{ realmRoles: ['default-roles-shop'], ...more },
});

export function keycloak(): [Files, ForeignExport] {
  const jane = { firstName: 'Jane', lastName: 'Doe', email: 'jane.keycloak@example.com' };
  const google = { identityProvider: 'google', userId: '110000000000000000001', userName: 'jane' };
  const github = { identityProvider: 'github', userId: '583231', userName: 'kim' };
  const users = [
    user(1, 'jane', {
      ...{ ...jane, attributes: { phone: ['1'] }, credentials: [pbkdf2('sha512', 210_000)] },
      federatedIdentities: [google],
    }),
    user(2, 'john', {
      ...{ enabled: false, email: 'john.keycloak@example.com', totp: true },
      credentials: [argon2Password(), { type: 'otp', secretData: '{}', credentialData: '{}' }],
    }),
    user(3, 'service-account-shop', { serviceAccountClientId: 'shop' }),
  ];
  const others = [
    // A realm may permit equal e-mail addresses. The rounds are those of versions before 24.
    user(4, 'jana', { ...jane, credentials: [pbkdf2('sha256', 27_500)] }),
    user(5, 'joan', { email: 'joan.keycloak@example.com', credentials: [argon2Password()] }),
    user(7, 'jill', { email: 'jill.keycloak@example.com', credentials: [pbkdf2('sha1', 20_000, 'pbkdf2')] }),
    user(6, 'kim', { federatedIdentities: [github] }),
  ];
  const storage = { id: 'f:0e1f1a9c-1f0e-4c4b-8f52-1b1f4a0f6f3d:ann', credentials: [], realmRoles: [] };
  return [
    {
      'keycloak/shop-realm.json': pretty({ realm: 'shop', clients: [{ clientId: 'shop' }], users: [] }),
      'keycloak/shop-users-0.json': pretty({ realm: 'shop', users }),
      'keycloak/shop-users-1.json': pretty({ realm: 'shop', users: others }),
      'keycloak/shop-federated-users-0.json': pretty({ realm: 'shop', federatedUsers: [storage] }),
    },
    {
      system: 'keycloak',
      files: ['realm', 'users-0', 'users-1', 'federated-users-0'].map((name) => `keycloak/shop-${name}.json`),
      ...{ args: ['--issuer', ISSUER], importArgs: [], lines: 13 },
      report: `converted: users 6, usernames 6, passwords 5, links 1, users without an e-mail address 1
dropped: attributes 1, credential otp 1, link of github without --issuer 1, realmRoles 6, service account 1, totp 1, user of a user storage 1
`,
      passwords: [login('jane'), login('jana'), login('joan'), login('jill')],
      disabled: [login('john')],
      subjects: [google.userId],
    },
  ];
}
