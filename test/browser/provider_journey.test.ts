import { setDefaultTimeout, test } from 'bun:test';
import { freshDatabase } from '../support/database.ts';
import {
  completeInOtherBrowser,
  signInTwiceAndElsewhere,
  signInWithoutPermission,
  startOidcProvider,
  startProviderJourney,
} from '../support/provider_journey.ts';
import { BROWSER_TEST_MS } from './console_window.ts';

/** Sign-in through oidc-provider from npm. `npm run soak -- --only provider_journey` does the same with Keycloak. */

setDefaultTimeout(BROWSER_TEST_MS);

const journey = await startProviderJourney(await freshDatabase(), await startOidcProvider());

test('a user who signs in through a provider is the same one again, in each browser and at both processes', () =>
  signInTwiceAndElsewhere(journey));

test('an answer of a provider is refused in another browser, and accepted in its own afterwards', () =>
  completeInOtherBrowser(journey));

test('a process without --allow-private for the address of a provider signs nobody in through it', () =>
  signInWithoutPermission(journey));
