import { z } from 'zod';
import type { AuthorizationRequest } from '../../auth/sessions/console_providers.ts';
import type { ConsoleSession, SessionGrant } from '../../auth/sessions/sessions.ts';
import { LIMITS } from '../../domain/limits.ts';
import { link } from '../openapi/schemas.ts';
import { REALMS_OUTPUT, showRealms } from './admin/realms.ts';
import { type ProjectedMembers, projectionSchema, projector } from './projection.ts';

/** The bodies and examples of the sign-in operations. */

const providerName = z
  .string()
  .min(1, 'must not be empty')
  .max(32, 'must have at most 32 characters')
  .meta({ description: 'A provider name from `/console/ways`.' });

/** The code of a link or a provider, which is exchanged for a session. */
export const exchangeSchema = z
  .object({
    grant: z.enum(['link', 'provider']),
    code: z
      .string()
      .min(1)
      // The provider decides the length of a code (RFC 6749, 4.1.2).
      .max(8_192)
      .meta({
        description:
          'For a link, the text after `#code=`; for a provider, the authorization code it returned.',
      }),
    name: providerName.optional(),
    code_verifier: z
      .string()
      .regex(/^[\w.~-]{43,128}$/, 'must be 43 to 128 letters, digits or . _ ~ - (RFC 7636, 4.1)')
      .optional(),
    nonce: z
      .string()
      .regex(/^[\w-]{22,255}$/, 'must be 22 to 255 characters of base64url')
      .optional()
      .meta({ description: 'The nonce of the authorization request.' }),
    iss: z
      .string()
      .min(1, 'must not be empty')
      .max(1_024, 'must have at most 1024 characters')
      .optional()
      .meta({ description: 'The `iss` parameter of the authorization response (RFC 9207).' }),
  })
  .superRefine((input, context) => {
    if (input.grant !== 'provider') return;
    for (const name of ['name', 'code_verifier', 'nonce'] as const) {
      if (input[name] === undefined)
        context.addIssue({ code: 'custom', path: [name], message: 'is missing' });
    }
  });

/** The provider to sign in through. */
export const providerSignInSchema = z.object({ name: providerName });

export const methodsSchema = () =>
  z
    .strictObject({
      data: z.strictObject({
        link: z.string().meta({ description: 'The command that prints a sign-in link.' }),
        providers: z
          .array(z.strictObject({ name: z.string() }))
          .meta({ description: 'The OpenID providers.' }),
      }),
    })
    .meta({ id: 'ConsoleWays' });

const RENEWED: ProjectedMembers<SessionGrant> = {
  access_token: [z.string(), ({ token }) => token],
  expires_in: z.int().meta({ description: 'Seconds until the token expires.' }),
  session_expires_in: z
    .int()
    .meta({ description: 'Seconds until the session ends, however often it is renewed.' }),
  scope: [z.string(), ({ scopes }) => [...scopes].join(' ')],
  realms: [REALMS_OUTPUT, ({ realms }) => showRealms(realms)],
  actor: z.string().meta({ description: 'The name of the user in the audit log.' }),
};
const BEGUN: ProjectedMembers<ConsoleSession> = {
  ...RENEWED,
  label: z.string().meta({ description: 'The display name in the console.' }),
};
const REQUEST: ProjectedMembers<AuthorizationRequest> = {
  authorization_endpoint: link,
  client_id: z.string(),
  issuer: link,
  scope: z.string(),
  redirect_uri: link,
};

export const describeSession = projector(BEGUN);
export const describeRenewal = projector(RENEWED);
export const describeRequest = projector(REQUEST);

export const sessionSchema = () =>
  z.strictObject({ data: projectionSchema(BEGUN) }).meta({ id: 'ConsoleSession' });

export const renewalSchema = () =>
  z.strictObject({ data: projectionSchema(RENEWED) }).meta({ id: 'ConsoleRenewal' });

export const providerSignInAnswer = () =>
  z
    .strictObject({ data: projectionSchema(REQUEST) })
    .meta({ id: 'ConsoleDeparture', description: 'The page generates state, nonce and the PKCE verifier.' });

export const RENEWAL = {
  data: {
    access_token: 'eyJhbGciOiJFZDI1NTE5In0.e30.c2lnbmF0dXJl',
    expires_in: LIMITS.consoleTokenSeconds,
    session_expires_in: 28_800,
    scope: 'users:read',
    realms: '*',
    actor: 'console:anna',
  },
};
export const SESSION = { data: { ...RENEWAL.data, label: 'anna' } };

export const METHODS_EXAMPLE = {
  data: {
    link: 'authrealm console link --scope support --base-url https://idp.example',
    providers: [{ name: 'staff' }],
  },
};

export function providerSignInExample(baseUrl: string): object {
  const issuer = 'https://login.example';
  return {
    data: {
      authorization_endpoint: `${issuer}/authorize`,
      client_id: 'authrealm-console',
      issuer,
      scope: 'openid profile email',
      redirect_uri: `${baseUrl}/console`,
    },
  };
}
