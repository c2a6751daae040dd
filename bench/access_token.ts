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

/** Creates a client with these scopes, known to the running service when this resolves. `flags` name the database. */
export async function createBenchClient(
  authrealm: string,
  flags: readonly string[],
  scope: string,
): Promise<{ readonly clientId: string; readonly secret: string }> {
  const command = ['client', 'create', '--name', 'bench', '--scope', scope, '--json', ...flags];
  const client = JSON.parse(await runAuthrealm(authrealm, command));
  await Bun.sleep(1_000);
  return { clientId: client.client_id, secret: client.client_secret };
}

/** Creates a client with all scopes that the bench uses, and returns an access token. `flags` name the database. */
export async function fetchToken(authrealm: string, flags: readonly string[], url: string): Promise<string> {
  const scope = 'profile-infos:read profile-infos:write users:read users:write';
  const { clientId, secret } = await createBenchClient(authrealm, flags, scope);
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
