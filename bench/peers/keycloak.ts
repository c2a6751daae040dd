import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { subjectAt, usernameAt } from '../../test/support/population.ts';
import { batches, type Peer, type PeerContext, sendJson, spreadNumbers } from './peer.ts';

const PROVIDER = 'login';
const ADMIN = '/admin/realms/bench';
const BATCH = 200;

/** Keycloak on PostgreSQL. Its realm comes from a file; IDs are chosen by the bench. */
export function keycloak(distribution: string): Peer {
  const token = async ({ port }: PeerContext): Promise<string> => {
    const form = { grant_type: 'client_credentials', client_id: 'bench', client_secret: 'bench-on-loopback' };
    const url = `http://127.0.0.1:${port}/realms/bench/protocol/openid-connect/token`;
    const response = await fetch(url, { method: 'POST', body: new URLSearchParams(form) });
    if (!response.ok)
      throw new Error(`Keycloak granted no token: ${response.status} ${await response.text()}`);
    return ((await response.json()) as { access_token: string }).access_token;
  };
  return {
    name: 'Keycloak, PostgreSQL',
    engine: 'postgres',
    warmUpSeconds: 120,
    answers: 'the links to providers; the user and the password are requests of their own',
    async prepare({ database, port, folder }) {
      const { hostname, port: databasePort, pathname, username } = new URL(database);
      // A copy, because the file to import must be in its data folder.
      const home = join(folder, 'keycloak');
      cpSync(distribution, home, { recursive: true });
      mkdirSync(join(home, 'data/import'), { recursive: true });
      cpSync(join(import.meta.dir, 'keycloak/realm.json'), join(home, 'data/import/realm.json'));
      return {
        command: [
          join(home, 'bin/kc.sh'),
          ...['start', '--optimized', '--import-realm', '--http-enabled=true', '--http-host=127.0.0.1'],
          ...[`--http-port=${port}`, `--hostname=http://127.0.0.1:${port}`, '--log-level=error'],
        ],
        environment: {
          KC_DB_URL: `jdbc:postgresql://${hostname}:${databasePort}${pathname}`,
          KC_DB_USERNAME: username,
          KC_DB_PASSWORD: '',
          JAVA_OPTS_KC_HEAP: '-Xms1g -Xmx1g',
        },
        startSecondsMax: 300,
      };
    },
    async fill(context) {
      const headers = { Authorization: `Bearer ${await token(context)}` };
      for (const numbers of batches(context.users, BATCH)) {
        const users = numbers.map((number) => ({
          ...user(usernameAt(number), subjectAt(number)),
          id: context.userOf(number).user,
          credentials: [PASSWORD],
        }));
        const url = `http://127.0.0.1:${context.port}${ADMIN}/partialImport`;
        await sendJson(url, { ifResourceExists: 'FAIL', users }, { headers });
      }
    },
    async workload(context) {
      const numbers = spreadNumbers(context.users);
      return {
        token: await token(context),
        reads: numbers.map((number) => `${ADMIN}/users/${context.userOf(number).user}/federated-identity`),
        reverse: numbers.map(
          (number) =>
            `${ADMIN}/users?idpAlias=${PROVIDER}&idpUserId=${encodeURIComponent(subjectAt(number))}`,
        ),
        create: {
          path: `${ADMIN}/users`,
          body: JSON.stringify(user('bench{n}@example.com', 'bench|{n}')),
        },
      };
    },
  };
}

function user(email: string, subject: string) {
  return {
    username: email,
    email,
    emailVerified: true,
    enabled: true,
    federatedIdentities: [{ identityProvider: PROVIDER, userId: subject, userName: email }],
  };
}

/** Hashed as Keycloak does, so that it stores it as it is. */
const PASSWORD = {
  type: 'password',
  secretData: JSON.stringify({
    value: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    salt: 'AAAAAAAAAAAAAAAAAAAAAA==',
  }),
  credentialData: JSON.stringify({ hashIterations: 210_000, algorithm: 'pbkdf2-sha512' }),
};
