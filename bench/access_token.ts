/** Runs an authrealm command that must succeed, and returns its standard output. */
export async function runAuthrealm(authrealm: string, args: readonly string[]): Promise<string> {
  const child = Bun.spawn([authrealm, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: process.env,
  });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`authrealm ${args[0]} failed`);
  return output;
}

interface ClientRights {
  readonly scope: string;
  /** Further options of `client create`. */
  readonly options?: readonly string[];
}

/** All scopes of lookups and creates. */
const RECORD_RIGHTS = { scope: 'profile-infos:read profile-infos:write users:read users:write' };

/** Creates a client with these rights, known to the running service when this resolves. `flags` name the database. */
export async function createBenchClient(
  authrealm: string,
  flags: readonly string[],
  { scope, options = [] }: ClientRights,
): Promise<{ readonly clientId: string; readonly secret: string }> {
  const command = ['client', 'create', '--name', 'bench', '--scope', scope, '--json', ...options, ...flags];
  const client = JSON.parse(await runAuthrealm(authrealm, command));
  await Bun.sleep(1_000);
  return { clientId: client.client_id, secret: client.client_secret };
}

/** Creates a client, and returns an access token of it. `flags` name the database. */
export async function fetchToken(
  authrealm: string,
  flags: readonly string[],
  url: string,
  rights: ClientRights = RECORD_RIGHTS,
): Promise<string> {
  const { clientId, secret } = await createBenchClient(authrealm, flags, rights);
  const form = {
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: secret,
  };
  const response = await fetch(`${url}/oauth/access_token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  });
  return ((await response.json()) as { access_token: string }).access_token;
}
