import { z } from 'zod';
import type { OidcDeps } from '../http/operations/oidc_request.ts';
import { readText } from '../http/pipeline/body.ts';
import type { CallHandler } from '../http/pipeline/call.ts';
import type { Operation } from '../http/pipeline/operation.ts';
import { Fault } from '../model/fault.ts';
import { parseUuid } from '../model/id.ts';
import { isSafeUrl } from '../model/text/text.ts';
import {
  badRequest,
  browserDocumentation,
  callbackUri,
  cookieName,
  cookieText,
  pathOfLink,
  queryOf,
  seeOther,
  signInPlace,
  single,
  UNKNOWN_PROFILE,
} from './oidc_browser.ts';

const CODE = /^.{1,4096}$/s;
/** The parameters of a provider that are read. */
const PARAMETERS = ['code', 'state', 'iss', 'error'];

/** Errors of providers that are passed on (RFC 6749, 4.1.2.1; OpenID Connect Core 1.0, 3.1.2.6). */
const PASSED_ON: ReadonlySet<string> = new Set(
  (
    'invalid_request unauthorized_client access_denied unsupported_response_type invalid_scope server_error ' +
    'temporarily_unavailable interaction_required login_required account_selection_required consent_required ' +
    'invalid_request_uri invalid_request_object request_not_supported request_uri_not_supported registration_not_supported'
  ).split(' '),
);

/** The code of a provider, or an error and its description. */
async function readResponse(
  query: URLSearchParams,
  issuer: string,
  { providers }: OidcDeps['oidc'],
): Promise<string | [string, string]> {
  const provider = query.has('iss') ? undefined : await providers.metadata(issuer);
  // Without the metadata, nobody knows whether the parameter was removed on the way (RFC 9207, 2.4).
  if (!query.has('iss') && !provider)
    return ['temporarily_unavailable', 'the provider cannot be used at the moment'];
  if (query.has('iss') ? single(query, 'iss') !== issuer : provider?.sendsIssuer)
    return ['server_error', 'the response is not of the provider that was asked'];
  const error = single(query, 'error') ?? '';
  if (query.has('error'))
    return [PASSED_ON.has(error) ? error : 'server_error', 'the provider did not sign the person in'];
  const code = single(query, 'code') ?? '';
  return CODE.test(code) ? code : ['server_error', 'the provider sent no valid code'];
}

/** Sends a browser that comes from the provider back to the caller, with a code of this service. */
function callback(deps: OidcDeps): CallHandler {
  const { oidc, baseUrl } = deps;
  return async (call) => {
    const query = queryOf(call);
    const place = await signInPlace(call, call.params.id, deps);
    if (!place?.profile) return badRequest(UNKNOWN_PROFILE);
    const { realm, profile } = { ...place, profile: place.profile };
    const opened = oidc.flow.openState(single(query, 'state') ?? '', realm.id, profile.id);
    if (!opened) return badRequest('state is not valid or has expired: sign in again');
    const redirectUri = oidc.flow.redirectUriOf(opened, realm.redirect_uris);
    if (redirectUri === undefined)
      return badRequest('redirect_uri of the sign-in is no longer one of the realm');
    const back = ([error, text]: readonly [string, string]) =>
      Object.entries({ error, error_description: text, state: opened.state });
    const cookie = cookieName(baseUrl, opened);
    if (!cookiesNamed(cookie, call.request).some((value) => oidc.flow.isCookieOf(opened, value))) {
      const text = 'the sign-in was begun in another browser, or is already completed';
      return opened.reportsReplay ? seeOther(redirectUri, back(['callback_replay', text])) : badRequest(text);
    }
    const response = await readResponse(query, profile.issuer, oidc);
    const answer = Array.isArray(response)
      ? back(response)
      : Object.entries({ code: oidc.flow.sealCode(opened, response), state: opened.state });
    return seeOther(redirectUri, answer, cookieText(`${cookie}=`, baseUrl, 0));
  };
}

function cookiesNamed(name: string, { headers }: Request): readonly string[] {
  const pairs = (headers.get('cookie') ?? '').split(';').map((pair) => pair.trim());
  return pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
}

/**
 * Answers a form with a redirect to the same path: a Lax cookie does not come with the POST of another site, but does with that GET.
 * Other fields, such as the name of the person, are dropped.
 */
function forwardForm(deps: OidcDeps): CallHandler {
  return async ({ params, request }) => {
    const [store, realm, id] = [params.store, params.realm, params.id].map((raw = '') => parseUuid(raw));
    if (store !== deps.installation || !realm || !id || !isSafeUrl(deps.baseUrl))
      return badRequest(UNKNOWN_PROFILE);
    const body = await readText(request).catch((error: unknown) => {
      if (error instanceof Fault && error.code === 'malformed') return undefined;
      throw error;
    });
    if (body === undefined) return badRequest('the body must be UTF-8 text');
    const fields = [...new URLSearchParams(body)].filter(([name]) => PARAMETERS.includes(name));
    return seeOther(callbackUri(deps, realm, id), fields);
  };
}

const text = () => z.string().optional();

export const CALLBACK_OPERATIONS: readonly Operation<OidcDeps>[] = [
  {
    name: 'complete-oidc-sign-in',
    method: 'GET',
    path: pathOfLink('callback-endpoint'),
    access: 'open',
    work: 'get',
    handle: callback,
    document: () => ({
      summary: 'Send a browser that comes from the provider to the redirect URI.',
      ...browserDocumentation(
        ['store', 'realm', 'id'],
        'To the redirect URI, with `state`, and with `code` or `error` and `error_description`.',
      ),
      query: z.object(
        Object.fromEntries(PARAMETERS.map((name) => [name, text().meta({ param: { example: name } })])),
      ),
    }),
  },
  {
    name: 'forward-oidc-callback',
    method: 'POST',
    path: pathOfLink('callback-endpoint'),
    access: 'open',
    body: 'form',
    handle: forwardForm,
    document: () => ({
      summary: 'The same for a provider that sends a form (OAuth 2.0 Form Post Response Mode).',
      ...browserDocumentation(['store', 'realm', 'id'], 'To the same path, with the fields as its query.'),
      body: {
        schema: z.object(Object.fromEntries(PARAMETERS.map((name) => [name, text()]))),
        example: { code: 'a code', state: 'the state' },
      },
    }),
  },
];
