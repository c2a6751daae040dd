export interface ClientSecret {
  readonly client_id: string;
  readonly client_secret: string;
}

/** Requests a token from a running service with a client's secret. */
export async function requestToken(url: string, client: ClientSecret): Promise<string> {
  const { client_id, client_secret } = client;
  const body = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret });
  const response = await fetch(`${url}/oauth/access_token`, { method: 'POST', body });
  return ((await response.json()) as { access_token: string }).access_token;
}
