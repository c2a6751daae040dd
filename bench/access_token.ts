/** Runs an authrealm command and returns its standard output. */
async function runCommand(authrealm: string, args: readonly string[]): Promise<string> {
  const child = Bun.spawn([authrealm, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: process.env,
  });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`authrealm ${args[0]} failed`);
  return output;
}

/** Creates a client with all scopes that the bench uses, and returns an access token. `flags` name the database. */
export async function fetchToken(authrealm: string, flags: readonly string[], url: string): Promise<string> {
  const scope = ['--scope', 'profile-infos:read profile-infos:write users:read users:write', '--json'];
  const client = JSON.parse(
    await runCommand(authrealm, ['client', 'create', '--name', 'bench', ...scope, ...flags]),
  );
  await Bun.sleep(1_000);
  const form = {
    grant_type: 'client_credentials',
    client_id: client.client_id,
    client_secret: client.client_secret,
  };
  const response = await fetch(`${url}/oauth/access_token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  });
  return ((await response.json()) as { access_token: string }).access_token;
}
