import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import { SignJWT } from 'jose';
import { subjectAt, usernameAt } from '../../test/support/population.ts';
import { BCRYPT_HASH, batches, type Peer, type PeerContext, runToEnd, spreadNumbers } from './peer.ts';

const PROVIDER = 'keycloak';
const BATCH = 1_000;

/** Supabase Auth. Its API creates no user with a link, so users are filled in its tables, and creates are of plain users. */
export function supabaseAuth(program: string): Peer {
  const secret = crypto.randomUUID();
  const environment = ({ database, port }: PeerContext): Record<string, string> => ({
    ...readVariables(join(import.meta.dir, 'supabase-auth/auth.env')),
    DATABASE_URL: `${database}?search_path=auth`,
    PORT: String(port),
    API_EXTERNAL_URL: `http://127.0.0.1:${port}`,
    GOTRUE_JWT_SECRET: secret,
  });
  return {
    name: 'Supabase Auth, PostgreSQL',
    engine: 'postgres',
    warmUpSeconds: 5,
    answers: 'the user with metadata and all identities',
    creates: 'a user with a given password hash: no route creates one with a link',
    async prepare(context) {
      const sql = new SQL(context.database, { max: 1 });
      await sql.unsafe('create schema auth');
      await sql.close();
      const variables = environment(context);
      // Its working directory, so that it reads no settings but these.
      await runToEnd([program, 'migrate'], { cwd: context.folder, environment: variables });
      return { command: [program], environment: variables };
    },
    async fill({ database, users, userOf }) {
      const sql = new SQL(database, { max: 1 });
      for (const numbers of batches(users, BATCH)) {
        const rows = numbers.map((number) => ({
          id: userOf(number).user,
          email: usernameAt(number),
          subject: subjectAt(number),
        }));
        await sql.unsafe(FILL, [JSON.stringify(rows), BCRYPT_HASH, PROVIDER]);
      }
      await sql.close();
    },
    async workload({ users, userOf }) {
      const token = await new SignJWT({ role: 'service_role' })
        .setProtectedHeader({ alg: 'HS256' })
        .setAudience('authenticated')
        .setIssuedAt()
        .setExpirationTime('10h')
        .sign(new TextEncoder().encode(secret));
      return {
        token,
        reads: spreadNumbers(users).map((number) => `/admin/users/${userOf(number).user}`),
        create: {
          path: '/admin/users',
          // Without a hash it generates a password and hashes that, which takes longer than all else.
          body: JSON.stringify({
            email: 'bench{n}@example.com',
            email_confirm: true,
            password_hash: BCRYPT_HASH,
          }),
        },
      };
    },
  };
}

/** The rows that its own sign-up leaves for a user with a password and an identity of a provider. */
const FILL = `with input as (
    select * from jsonb_to_recordset($1::text::jsonb) as row (id uuid, email text, subject text)
  ), created as (
    insert into auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at,
      confirmation_token, recovery_token, email_change, email_change_token_new, email_change_token_current,
      raw_app_meta_data, raw_user_meta_data, created_at, updated_at)
    select '00000000-0000-0000-0000-000000000000', id, 'authenticated', 'authenticated', email, $2, now(),
      '', '', '', '', '', jsonb_build_object('provider', $3::text, 'providers', jsonb_build_array($3::text)), '{}', now(), now()
    from input returning id
  )
  insert into auth.identities (provider_id, user_id, provider, identity_data, created_at, updated_at)
  select subject, id, $3, jsonb_build_object('sub', subject, 'email', email), now(), now() from input`;

function readVariables(path: string): Record<string, string> {
  const lines = readFileSync(path, 'utf8').split('\n');
  return Object.fromEntries(
    lines
      .filter((line) => /^\w+=/.test(line))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}
