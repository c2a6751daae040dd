import { createFixture, type Service, startService } from '../support/service.ts';
import type { Seen } from './generators.ts';

/** A service for generated clients: its document, the variables of their programs, and what these must print. */
export interface GeneratorTarget {
  readonly service: Service;
  readonly document: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly expected: Seen;
}

export async function startGeneratorTarget(): Promise<GeneratorTarget> {
  const service = await startService({ offline: 'true' });
  const { realm, user, oidcLink, passwordLink, subject, username } = await createFixture(service.db);
  const token = await service.token('users:write users:read profile-infos:read');
  return {
    service,
    document: await (await service.get('/openapi.json')).text(),
    variables: {
      ...{ BASE_URL: service.url, TOKEN: token, REALM: realm, USER: user },
      ...{ OIDC_LINK: oidcLink, PASSWORD_LINK: passwordLink },
    },
    expected: {
      oidc: [200, subject],
      password: [200, username],
      created: [201, 'Jane Doe'],
      absent: [404, 'Not Found'],
    },
  };
}
