import { equal } from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { endBrowser } from '../browser/browser.ts';
import { freshDatabase } from '../support/database.ts';
import { endFile } from '../support/ending.ts';
import { RUN_FOLDER } from '../support/folder.ts';
import { type Keycloak, startKeycloak } from '../support/keycloak.ts';
import { claimsIn } from '../support/oidc_token_calls.ts';
import { endServers } from '../support/postgres_server.ts';
import {
  ANNA,
  completeInOtherBrowser,
  type JourneyProvider,
  type ProviderJourney,
  signInTwiceAndElsewhere,
  signInWithoutPermission,
  startOidcProvider,
  startProviderJourney,
} from '../support/provider_journey.ts';
import { END_USER } from '../support/sign_in.ts';

/**
 * Users sign in through oidc-provider and through Keycloak, in a browser, at two processes on each engine: the steps of
 * test/browser/provider_journey.test.ts. Keycloak is at another private address than the service.
 */

const { values: options } = parseArgs({
  options: {
    engine: { type: 'string', multiple: true, default: ['sqlite', 'postgres', 'citus'] },
    provider: { type: 'string', multiple: true, default: ['oidc-provider', 'keycloak'] },
    /** Where Keycloak is installed, for this run and the next ones, as by `npm run bench:peers`. */
    programs: { type: 'string', default: join(tmpdir(), 'authrealm-peers') },
  },
});

const PROVIDERS: Readonly<Record<string, () => Promise<JourneyProvider | Keycloak>>> = {
  'oidc-provider': startOidcProvider,
  keycloak: () => startKeycloak(options.programs),
};

const STEPS = [signInTwiceAndElsewhere, completeInOtherBrowser, signInWithoutPermission, checkIdToken];

/** Keycloak puts the e-mail address into its ID tokens, so that a check of one may create a user (docs/guides/provider-sign-in.md#providers). */
async function checkIdToken(
  { first, client, profilePath }: ProviderJourney,
  provider: JourneyProvider | Keycloak,
): Promise<void> {
  if (!('idToken' in provider)) return;
  const id_token = await provider.idToken(client);
  equal(claimsIn(id_token).email, ANNA.email);
  const body = { data: { type: 'oidc_check', id_token } };
  const answer = await first.post(`${profilePath}/check`, await first.token(), body, END_USER);
  equal(((await answer.json()) as { data: { outcome?: string } }).data.outcome, 'known');
}

let journeys = 0;
try {
  for (const name of options.provider) {
    const provider = await PROVIDERS[name]?.();
    if (!provider) throw new Error(`--provider must be one of ${Object.keys(PROVIDERS).join(', ')}`);
    for (const engine of options.engine) {
      const startedAt = performance.now();
      const journey = await startProviderJourney(await freshDatabase(engine), provider);
      const seconds: string[] = [];
      for (const step of STEPS) {
        const start = performance.now();
        await step(journey, provider);
        seconds.push(((performance.now() - start) / 1000).toFixed(1));
      }
      journeys += 1;
      const total = ((performance.now() - startedAt) / 1000).toFixed(1);
      console.log(`${name}, ${engine}: steps of ${seconds.join(', ')} s, ${total} s with the start`);
    }
  }
} finally {
  await endFile();
  await endBrowser();
  rmSync(RUN_FOLDER, { recursive: true, force: true });
  await endServers();
}
console.log(`journeys: ${journeys}; ${options.provider.join(' and ')}, on ${options.engine.join(', ')}`);
