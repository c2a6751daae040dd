/** Runs a command of the program and answers what it printed. */
async function command(authrealm: string, args: readonly string[]): Promise<string> {
  const child = Bun.spawn([authrealm, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`authrealm ${args[0]} failed`);
  return output;
}

/** The token of a new client, who may do all that the bench asks. `flags` say which database. */
export async function fetchToken(authrealm: string, flags: readonly string[], url: string): Promise<string> {
  const scope = ['--scope', 'profile-infos:read profile-infos:write users:read', '--json'];
  const client = JSON.parse(
    await command(authrealm, ['client', 'create', '--name', 'bench', ...scope, ...flags]),
  );
  await Bun.sleep(1_000);
  const form = {
    grant_type: 'client_credentials',
    client_id: client.client_id,
    client_secret: client.client_secret,
  };
  const answer = await fetch(`${url}/oauth/access_token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  });
  return ((await answer.json()) as { access_token: string }).access_token;
}
