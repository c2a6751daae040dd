import { z } from 'zod';
import { linkParameters } from '../http/openapi/parameters.ts';
import {
  ALWAYS,
  fixedHeader,
  HEADERS,
  header,
  jsonContent,
  optionalHeader,
} from '../http/openapi/responses.ts';
import { lazyComponent } from '../http/openapi/schemas.ts';
import type { Call } from '../http/pipeline/call.ts';
import type { Documentation } from '../http/pipeline/operation.ts';
import type { RecordDeps } from '../http/pipeline/pipeline.ts';
import { JSON_TYPE, type Reply } from '../http/server/reply.ts';
import { parseUuid, type Uuid } from '../model/id.ts';
import type { RecordOf } from '../model/resource.ts';
import { oidcProfile, type realm } from '../model/resources.ts';
import { isSafeUrl } from '../model/text/text.ts';
import type { PresetOrigin } from '../records/presets.ts';
import type { OpenedState } from '../sign_in/oidc_flow.ts';

/** What the endpoints of sign-in through OpenID providers have in common (docs/wire.md#oidc-profiles). Browsers are sent to them. */

const ORIGIN: PresetOrigin = 'account_authentication_settings';

const LINKS = oidcProfile.extraLinks;

/** The path of a link of profiles, as a route. */
export const pathOfLink = (name: keyof typeof LINKS): string =>
  (LINKS[name].split('?')[0] ?? '').replace(/\{(\w+)\}/g, ':$1');

/** Where the provider of a profile sends browsers. */
export function callbackUri(
  { baseUrl, installation }: Pick<RecordDeps, 'baseUrl' | 'installation'>,
  realmId: Uuid,
  profileId: Uuid,
): string {
  const path = LINKS['callback-endpoint'].replace('{store}', installation).replace('{realm}', realmId);
  return baseUrl + path.replace('{id}', profileId);
}

/**
 * The realm in the path, and the profile of it that `profileId` names. Undefined unless people may sign in to the realm: it is that of
 * account members and has redirect URIs. Over plain http, except on this machine, others could read the cookie, so that nobody may.
 */
export async function signInPlace(
  { params }: Call,
  profileId: string | undefined,
  { settingsRealms, installation, baseUrl, store }: RecordDeps,
) {
  if (parseUuid(params.store ?? '') !== installation || !isSafeUrl(baseUrl)) return undefined;
  const found = (await settingsRealms.find(ORIGIN)) as RecordOf<typeof realm> | undefined;
  if (!found || found.id !== parseUuid(params.realm ?? '') || found.redirect_uris.length === 0)
    return undefined;
  const id = parseUuid(profileId ?? '');
  const profile = id && (await store.get(oidcProfile, [found.id, id]));
  return { realm: found, profile: profile as RecordOf<typeof oidcProfile> | undefined };
}

export function queryOf({ request }: Call): URLSearchParams {
  return new URLSearchParams(/\?([^#]*)/.exec(request.url)?.[1]);
}

/** A parameter that is given once. An empty one counts as absent (RFC 6749, 3.1). */
export function single(query: URLSearchParams, name: string): string | undefined {
  const [value, second] = query.getAll(name);
  return second === undefined && value !== '' ? value : undefined;
}

/** The URLs contain codes and states: no page may send them on, and nothing may store them. */
const NO_TRACE = {
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} as const;

/** The text names a parameter, and never repeats a value. */
export function badRequest(text: string): Reply {
  const body = { error: 'invalid_request', errorDescription: text, error_description: text } as const;
  const headers = { ...NO_TRACE, 'Content-Type': JSON_TYPE };
  return { status: 400, headers, body: JSON.stringify(body), fault: body.error };
}

export const UNKNOWN_PROFILE =
  'the URL must name an OIDC profile of the realm of account members, which has redirect URIs';

/** Sends a browser on by GET, also from a POST, with those parameters that have a value. */
export function seeOther(
  url: string,
  parameters: Iterable<[string, string | undefined]>,
  cookie?: string,
): Reply {
  const given = [...parameters].filter((each): each is [string, string] => each[1] !== undefined);
  const Location = `${url}${url.includes('?') ? '&' : '?'}${new URLSearchParams(given)}`;
  const headers = { ...NO_TRACE, Location, ...(cookie ? { 'Set-Cookie': cookie } : {}) };
  return { status: 303, headers, body: null };
}

/** `__Host-` keeps other hosts of the domain from setting it. Browsers accept it over https alone. */
export function cookieName(baseUrl: string, { cookie }: Pick<OpenedState, 'cookie'>): string {
  return baseUrl.startsWith('https:') ? `__Host-${cookie.name}` : cookie.name;
}

/** Lax: it comes with the redirect from the provider, and with no image or form of another site. */
export function cookieText(nameAndValue: string, baseUrl: string, seconds: number): string {
  const secure = baseUrl.startsWith('https:') ? 'Secure; ' : '';
  return `${nameAndValue}; Path=/; ${secure}HttpOnly; SameSite=Lax; Max-Age=${seconds}`;
}

const refusal = lazyComponent(() => {
  const [error, text] = [z.literal('invalid_request'), z.string()];
  return z
    .strictObject({ error, errorDescription: text, error_description: text })
    .meta({ id: 'OidcRefusal' });
});

/** The documentation of an endpoint that redirects browsers; `names`: the parameters of its path. */
export function browserDocumentation(names: readonly string[], redirected: string) {
  const headers = {
    ...{ ...ALWAYS, 'Cache-Control': HEADERS.noStore },
    'Referrer-Policy': fixedHeader('The URL is sent to no other site.', NO_TRACE['Referrer-Policy']),
    'X-Content-Type-Options': fixedHeader('Its type is not guessed.', NO_TRACE['X-Content-Type-Options']),
  };
  const location = {
    Location: header('Where the browser goes.', 'https://shop.example.com/callback?state=af0ifjsldkj'),
    'Set-Cookie': optionalHeader(
      'The cookie of the sign-in.',
      'authrealm-sign-in-0=; Max-Age=0',
      'sign-in-cookie',
    ),
  };
  return {
    tag: oidcProfile.name,
    path: linkParameters(oidcProfile, names),
    responses: {
      '303': { description: redirected, headers: z.object({ ...headers, ...location }) },
      '400': {
        description: 'A parameter is not valid, without which the browser cannot be sent back.',
        headers: z.object(headers),
        content: jsonContent(refusal(), JSON.parse(String(badRequest(UNKNOWN_PROFILE).body))),
      },
    },
  } satisfies Omit<Documentation, 'summary'>;
}
