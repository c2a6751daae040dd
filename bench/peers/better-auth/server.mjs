// better-auth on Bun and its SQLite driver. The library has no endpoint for another server that asks for a user with all
// links, so this is one over its adapter, with a fixed token. Arguments: port, database; environment: PEER_TOKEN.
import { Database } from 'bun:sqlite';
import { betterAuth } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';

const [port, file] = process.argv.slice(2);
const database = new Database(file, { create: true });
database.run('pragma journal_mode = wal');
const options = {
  database,
  baseURL: `http://127.0.0.1:${port}`,
  secret: crypto.randomUUID(),
  emailAndPassword: { enabled: true },
  rateLimit: { enabled: false },
  logger: { disabled: true },
  telemetry: { enabled: false },
};
await (await getMigrations(options)).runMigrations();
const { adapter, internalAdapter } = await betterAuth(options).$context;
const authorization = `Bearer ${process.env.PEER_TOKEN}`;

/** Calls a handler for requests with the token. */
const guarded = (handler) => (request) =>
  request.headers.get('authorization') === authorization
    ? handler(request)
    : new Response(null, { status: 401 });

async function readUser({ params: { id } }) {
  const [user, accounts] = await Promise.all([
    internalAdapter.findUserById(id),
    internalAdapter.findAccounts(id),
  ]);
  if (!user) return new Response(null, { status: 404 });
  return Response.json({ user, accounts: accounts.map(({ password, ...account }) => account) });
}

async function findAccount({ params: { provider, subject } }) {
  const account = await adapter.findOne({
    model: 'account',
    where: [
      { field: 'accountId', value: subject },
      { field: 'providerId', value: provider },
    ],
  });
  return account ? Response.json(account) : new Response(null, { status: 404 });
}

async function createUser(request) {
  const { user, account } = await request.json();
  return Response.json(await internalAdapter.createOAuthUser(user, account), { status: 201 });
}

/** Creates many users, each with a link and a password, in one transaction. */
async function fill(request) {
  database.run('begin');
  for (const { user, accounts } of await request.json()) {
    const dates = { createdAt: new Date(), updatedAt: new Date() };
    await adapter.create({ model: 'user', data: { ...user, ...dates }, forceAllowId: true });
    for (const account of accounts)
      await adapter.create({ model: 'account', data: { ...account, ...dates } });
  }
  database.run('commit');
  return new Response(null, { status: 204 });
}

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(port),
  development: false,
  routes: {
    '/users/:id': { GET: guarded(readUser) },
    '/accounts/:provider/:subject': { GET: guarded(findAccount) },
    '/users': { POST: guarded(createUser) },
    '/fill': { POST: guarded(fill) },
  },
  fetch: () => new Response(null, { status: 404 }),
});
