import type { OpenDatabase } from '../../src/app/open_database.ts';
import type { Uuid } from '../../src/model/id.ts';
import { oidcProfileInfo, realm, user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openOidcFlow } from '../../src/sign_in/oidc_flow.ts';
import { createKeyPair, DISCOVERY, issue, json, startIssuer } from '../support/issuers.ts';
import {
  CODE_CHALLENGE,
  CODE_VERIFIER,
  createOidcProfile,
  REDIRECT_URI,
  STATE,
} from '../support/oidc_sign_in.ts';
import { insertRecord, userMembers } from '../support/service.ts';
import type { ServiceProcess } from '../support/service_process.ts';
import type { Json } from '../support/token_forge.ts';

/** Of a service that may send requests to the provider. */
export const PROVIDER_FLAGS = ['--allow-private', 'localhost 127.0.0.0/8'];

/** Whom the directory has as a user with a link to the provider. */
export interface Person {
  readonly email: string;
  readonly subject: string;
}

/**
 * An OpenID provider of a realm, whose token endpoint waits so long, and then sends an ID token that was signed before the code was sent:
 * its time does not depend on the person.
 */
export async function startCodeProvider(db: OpenDatabase, realmId: Uuid, waitMs = 0) {
  const { issuer, routes, stop } = await startIssuer();
  const pair = await createKeyPair('one', 'ES256');
  const profileId = await createOidcProfile(db, realmId, issuer);
  const flow = openOidcFlow(db.keyring, systemClock);
  const idTokens = new Map<string, string>();
  let waiting = 0;

  const endpoints = { authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` };
  routes.set(DISCOVERY, json({ issuer, ...endpoints, jwks_uri: `${issuer}/keys` }));
  routes.set('/keys', json({ keys: [pair.publicJwk] }));
  routes.set('/token', async (request, response) => {
    waiting += 1;
    const form = new URLSearchParams(Buffer.concat(await Array.fromAsync(request)).toString());
    const code = form.get('code') ?? '';
    const id_token = idTokens.get(code);
    idTokens.delete(code);
    if (waitMs > 0) await Bun.sleep(waitMs);
    waiting -= 1;
    if (id_token)
      return json({ access_token: 'of-userinfo', token_type: 'Bearer', id_token })(request, response);
    response.statusCode = 400;
    return json({ error: 'invalid_grant' })(request, response);
  });

  /** A code of the callback: the service seals that of the provider into it. */
  function sealCode(providerCode: string): { readonly code: string; readonly nonce: string } {
    const place = { realmId, profileId, issuer, redirectUri: REDIRECT_URI, state: STATE };
    const begun = flow.begin({ ...place, codeChallenge: CODE_CHALLENGE, reportsReplay: false });
    const opened = flow.openState(begun.state, realmId, profileId);
    if (!opened) throw new Error('the state does not open');
    return { code: flow.sealCode(opened, providerCode), nonce: begun.nonce };
  }

  return {
    stop,
    /** Exchanges that the token endpoint has not answered. */
    waiting: () => waiting,
    /** The body of a token call with a code for an ID token with these claims; without claims, with a code that the provider refuses. */
    async tokenCall(claims?: Json): Promise<object> {
      const providerCode = crypto.randomUUID();
      const { code, nonce } = sealCode(providerCode);
      if (claims) {
        const iat = Math.floor(Date.now() / 1000);
        const always = { iss: issuer, aud: 'shop', nonce, iat, exp: iat + 300 };
        idTokens.set(providerCode, await issue(pair, { ...always, ...claims }, { typ: 'JWT' }));
      }
      return {
        data: {
          ...{ type: 'account_management_authentication_token', authentication_mechanism: 'oidc' },
          ...{ oauth_authorization_code: code, oauth_redirect_uri: REDIRECT_URI },
          oauth_code_verifier: CODE_VERIFIER,
        },
      };
    },
    /** Creates a user with a link. */
    async createPerson({ email, subject }: Person): Promise<void> {
      const [userId, link] = [systemClock.mintId(), systemClock.mintId()];
      await insertRecord(db, user, [realmId, userId], { ...userMembers, email });
      const members = { subject, issuer, oidc_profile_id: profileId };
      await insertRecord(db, oidcProfileInfo, [realmId, userId, link], members);
    },
    /** Lets the realm sign in through providers, and find users by verified e-mail addresses. */
    async allowSignIn({ put }: Pick<ServiceProcess, 'put'>, token: string): Promise<void> {
      const data = { type: realm.type, redirect_uris: [REDIRECT_URI], duplicate_email_policy: 'api_only' };
      const answer = await put(`/v2/authentication-realms/${realmId}`, token, { data });
      if (answer.status !== 200) throw new Error(await answer.text());
    },
  };
}
