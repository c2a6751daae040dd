import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { subjectAt, usernameAt } from '../../test/support/population.ts';
import {
  BCRYPT_HASH,
  batches,
  type Peer,
  type PeerContext,
  runToEnd,
  sendJson,
  spreadNumbers,
} from './peer.ts';

const PROVIDER = 'login';
const BATCH = 200;

/** Ory Kratos. Its admin API needs no credentials. IDs are its own, so they are read back after it was filled. */
export function kratos(program: string, engine: Peer['engine']): Peer {
  const environment = ({ port, database }: PeerContext): Record<string, string> => ({
    DSN:
      engine === 'sqlite'
        ? `sqlite://${database}?_fk=true&_journal_mode=WAL&_busy_timeout=100000&mode=rwc&max_conns=16&max_idle_conns=16`
        : `${database}?sslmode=disable&max_conns=64&max_idle_conns=64`,
    SERVE_ADMIN_HOST: '127.0.0.1',
    SERVE_ADMIN_PORT: String(port),
    SERVE_PUBLIC_HOST: '127.0.0.1',
    SERVE_PUBLIC_PORT: String(port + 1),
    SECRETS_COOKIE: crypto.randomUUID(),
    SECRETS_CIPHER: crypto.randomUUID().replaceAll('-', ''),
    SQA_OPT_OUT: 'true',
  });
  const identities = ({ port }: PeerContext) => `http://127.0.0.1:${port}/admin/identities`;
  return {
    name: `Ory Kratos, ${engine === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`,
    engine,
    warmUpSeconds: 5,
    answers: 'the user with traits, state and the identifiers of all credentials',
    async prepare(context) {
      cpSync(join(import.meta.dir, 'kratos'), context.folder, { recursive: true });
      const config = join(context.folder, 'kratos.yml');
      const schema = `file://${join(context.folder, 'person.schema.json')}`;
      const variables = {
        ...environment(context),
        IDENTITY_SCHEMAS_0_URL: schema,
        IDENTITY_SCHEMAS_0_ID: 'person',
      };
      await runToEnd([program, 'migrate', 'sql', '-e', '--yes', '-c', config], {
        cwd: context.folder,
        environment: variables,
      });
      return { command: [program, 'serve', '-c', config, '--sqa-opt-out'], environment: variables };
    },
    async fill(context) {
      for (const numbers of batches(context.users, BATCH)) {
        const created = numbers.map((number) => ({
          create: identity(usernameAt(number), subjectAt(number)),
        }));
        await sendJson(identities(context), { identities: created }, { method: 'PATCH' });
      }
    },
    async workload(context) {
      const ids = new Map<string, string>();
      for (let token = ''; ids.size < context.users; ) {
        const response = await fetch(`${identities(context)}?page_size=500&page_token=${token}`);
        const page = (await response.json()) as { id: string; traits: { email: string } }[];
        for (const { id, traits } of page) ids.set(traits.email, id);
        token = /page_token=([^&>]+)[^>]*>;\s*rel="next"/.exec(response.headers.get('link') ?? '')?.[1] ?? '';
        if (token === '') break;
      }
      const numbers = spreadNumbers(context.users);
      return {
        token: 'none',
        reads: numbers.map(
          (number) => `/admin/identities/${ids.get(usernameAt(number))}?include_credential=oidc`,
        ),
        reverse: numbers.map(
          (number) =>
            `/admin/identities?credentials_identifier=${encodeURIComponent(`${PROVIDER}:${subjectAt(number)}`)}`,
        ),
        create: {
          path: '/admin/identities',
          body: JSON.stringify(identity('bench{n}@example.com', 'bench|{n}', false)),
        },
      };
    },
  };
}

function identity(email: string, subject: string, hasPassword = true) {
  return {
    schema_id: 'person',
    traits: { email, name: email },
    credentials: {
      oidc: { config: { providers: [{ provider: PROVIDER, subject }] } },
      ...(hasPassword && { password: { config: { hashed_password: BCRYPT_HASH } } }),
    },
  };
}
