import { join } from 'node:path';
import { subjectAt, usernameAt } from '../../test/support/population.ts';
import { BCRYPT_HASH, batches, type Peer, sendJson, spreadNumbers } from './peer.ts';

const PROVIDER = 'login';
const BATCH = 500;

/** better-auth on Bun, behind an endpoint of its own (bench/peers/better-auth/server.mjs). */
export function betterAuth(folder: string): Peer {
  const token = crypto.randomUUID();
  return {
    name: 'better-auth on Bun, SQLite',
    engine: 'sqlite',
    warmUpSeconds: 5,
    answers: 'the user and all accounts, by an endpoint of ours over its adapter',
    prepare: async ({ port, database }) => ({
      command: [process.execPath, join(folder, 'server.mjs'), String(port), database],
      environment: { PEER_TOKEN: token },
    }),
    async fill({ port, users, userOf }) {
      for (const numbers of batches(users, BATCH)) {
        const rows = numbers.map((number) => {
          const { user } = userOf(number);
          const email = usernameAt(number);
          return {
            user: { id: user, name: email, email, emailVerified: true },
            accounts: [
              { userId: user, providerId: PROVIDER, accountId: subjectAt(number) },
              { userId: user, providerId: 'credential', accountId: user, password: BCRYPT_HASH },
            ],
          };
        });
        await sendJson(`http://127.0.0.1:${port}/fill`, rows, {
          headers: { Authorization: `Bearer ${token}` },
        });
      }
    },
    async workload({ users, userOf }) {
      const numbers = spreadNumbers(users);
      return {
        token,
        reads: numbers.map((number) => `/users/${userOf(number).user}`),
        reverse: numbers.map((number) => `/accounts/${PROVIDER}/${encodeURIComponent(subjectAt(number))}`),
        create: {
          path: '/users',
          body: JSON.stringify({
            user: { name: 'Bench {n}', email: 'bench{n}@example.com', emailVerified: true },
            account: { providerId: PROVIDER, accountId: 'bench|{n}' },
          }),
        },
      };
    },
  };
}
