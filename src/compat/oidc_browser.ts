import { z } from 'zod';
import { exampleIdOf, INSTALLATION } from '../http/openapi/examples.ts';
import { linkParameters } from '../http/openapi/parameters.ts';
import { ALWAYS, fixedHeader, header, jsonContent, optionalHeader } from '../http/openapi/responses.ts';
import { lazyComponent, link } from '../http/openapi/schemas.ts';
import type { OidcDeps } from '../http/operations/oidc_request.ts';
import { readText } from '../http/pipeline/body.ts';
import type { Call, CallHandler } from '../http/pipeline/call.ts';
import type { Documentation, Operation } from '../http/pipeline/operation.ts';
import { documentReply, JSON_TYPE, NOT_FOUND_REPLY, type Reply } from '../http/server/reply.ts';
import { Fault } from '../model/fault.ts';
import { parseUuid, type Uuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import type { RecordOf } from '../model/resource.ts';
import { oidcProfile, realm } from '../model/resources.ts';
import { violatedRule } from '../model/rule.ts';
import { isSafeUrl } from '../model/text/text.ts';
import type { OpenedState } from '../sign_in/oidc_flow.ts';

/** The endpoints of sign-in through OpenID providers, to which browsers are sent (docs/wire.md#sign-in-through-providers). */

/** The client of the realm of account members. */
const CLIENT = 'account-management';
const PROFILE = 'elasticpath_commerce_cloud_profile_id';
/** This provider sends names and e-mail addresses with this response mode alone. */
const FORM_POST_ISSUER = 'https://appleid.apple.com';
/** The parameters of a provider that are read. */
const PARAMETERS = ['code', 'state', 'iss', 'error'];
const LINKS = oidcProfile.extraLinks;
const UNKNOWN_PROFILE =
  'the URL must name an OIDC profile of the realm of account members, which has redirect URIs';

type Site = Pick<OidcDeps, 'baseUrl' | 'installation'>;

/** Where the provider of a profile sends browsers. */
export function callbackUri({ baseUrl, installation }: Site, realmId: Uuid, profileId: Uuid): string {
  const path = LINKS['callback-endpoint'].replace('{store}', installation).replace('{realm}', realmId);
  return baseUrl + path.replace('{id}', profileId);
}

/**
 * The query, the realm in the path, and the profile of it that path or query name. Undefined unless people may sign in to the realm: it is
 * that of account members and has redirect URIs. Over plain http, except on this machine, others could read the cookie.
 */
async function openPlace({ request, params }: Call, { settingsRealms, store, ...deps }: OidcDeps) {
  if (parseUuid(params.store ?? '') !== deps.installation || !isSafeUrl(deps.baseUrl)) return undefined;
  const found = await settingsRealms.find('account_authentication_settings');
  const { redirect_uris: redirectUris = [], id: realmId } = (found ?? {}) as Partial<RecordOf<typeof realm>>;
  if (!realmId || realmId !== parseUuid(params.realm ?? '') || redirectUris.length === 0) return undefined;
  const query = new URLSearchParams(/\?([^#]*)/.exec(request.url)?.[1]);
  const id = parseUuid(params.id ?? single(query, PROFILE) ?? '');
  const profile = id && (await store.get(oidcProfile, [realmId, id]));
  return { query, realmId, redirectUris, profile: profile as RecordOf<typeof oidcProfile> | undefined };
}

/** A parameter that is given once. An empty one counts as absent (RFC 6749, 3.1). */
function single(query: URLSearchParams, name: string): string | undefined {
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
function badRequest(text: string): Reply {
  const body = { error: 'invalid_request', errorDescription: text, error_description: text } as const;
  const headers = { ...NO_TRACE, 'Content-Type': JSON_TYPE };
  return { status: 400, headers, body: JSON.stringify(body), fault: body.error };
}

/** An error that is reported to a redirect URI (RFC 6749, 4.1.2.1). */
const failure = (error: string, error_description: string) => ({ error, error_description });
const UNAVAILABLE = failure('temporarily_unavailable', 'the provider cannot be used at the moment');

/** Sends a browser on by GET, also from a POST. */
function seeOther(Location: string, cookie?: string): Reply {
  const headers = { ...NO_TRACE, Location, ...(cookie ? { 'Set-Cookie': cookie } : {}) };
  return { status: 303, headers, body: null };
}

/** A URL with those parameters that have a value. */
function withQuery(url: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((each): each is [string, string] => each[1] !== undefined);
  return `${url}${url.includes('?') ? '&' : '?'}${new URLSearchParams(given)}`;
}

/** `__Host-` keeps other hosts of the domain from setting it. Browsers accept it over https alone. */
const cookieName = (baseUrl: string, name: string): string =>
  baseUrl.startsWith('https:') ? `__Host-${name}` : name;

/** Lax: it comes with the redirect from the provider, and with no image or form of another site. */
function cookieText(baseUrl: string, { name, value }: OpenedState['cookie'], seconds: number): string {
  const secure = baseUrl.startsWith('https:') ? 'Secure; ' : '';
  return `${cookieName(baseUrl, name)}=${value}; Path=/; ${secure}HttpOnly; SameSite=Lax; Max-Age=${seconds}`;
}

const withExample = <S extends z.ZodType>(schema: S, example: string): S =>
  schema.meta({ param: { example } });
const text = (pattern: RegExp, rule: string) => z.string().regex(pattern, rule);
const matching = (pattern: RegExp, rule: string, example: string) =>
  withExample(text(pattern, rule), example);
/** It is passed on to the provider. */
const forwarded = (example: string) =>
  withExample(text(/^.{1,255}$/s, 'must have at most 255 characters').optional(), example);

/** The parameters whose errors are reported to the redirect URI, in the order in which they are checked. */
const requestSchema = lazyComponent(() =>
  z.object({
    state: matching(/^[\x20-\x7e]{1,2048}$/, 'must have 1 to 2048 printable ASCII characters', 'af0ifjsldkj'),
    response_type: withExample(z.literal('code'), 'code'),
    response_mode: withExample(z.literal('query').optional(), 'query'),
    scope: matching(/(?:^| )openid(?: |$)/, 'must contain openid', 'openid email'),
    code_challenge_method: withExample(z.literal('S256'), 'S256'),
    // 32 bytes: the last character has two unused bits.
    code_challenge: matching(
      /^[\w-]{42}[AEIMQUYcgkosw048]$/,
      'must be 32 bytes as 43 characters of base64url',
      'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    ),
    ...{ prompt: forwarded('login'), display: forwarded('page') },
    ...{ ui_locales: forwarded('en'), login_hint: forwarded('jane@example.com') },
    ep_report_callback_replay_error: withExample(z.string().optional(), 'true'),
  }),
);

/** The errors of parameters (RFC 6749, 4.1.2.1). Those of all others are `invalid_request`. */
const ERRORS: Readonly<Record<string, string>> = {
  response_type: 'unsupported_response_type',
  scope: 'invalid_scope',
};

/** The request of a caller, or an error. */
function readRequest(query: URLSearchParams) {
  const names = [...query.keys()];
  if (new Set(names).size < names.length)
    return failure('invalid_request', 'a parameter is given more than once');
  const given = [...query].filter(([, value]) => value !== '');
  const parsed = requestSchema().safeParse(Object.fromEntries(given));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues as [z.core.$ZodIssue];
  const name = String(issue.path[0]);
  return failure(ERRORS[name] ?? 'invalid_request', `${name} ${violatedRule(issue)}`);
}

/** Sends a browser to the provider of a profile, with a `state` that holds what its return needs. */
function login(deps: OidcDeps): CallHandler {
  const { oidc, baseUrl } = deps;
  return async (call) => {
    const place = await openPlace(call, deps);
    if (!place?.profile) return badRequest(UNKNOWN_PROFILE);
    const { query, realmId, redirectUris } = place;
    const { issuer, client_id, id: profileId } = place.profile;
    if (single(query, 'client_id') !== CLIENT) return badRequest(`client_id must be ${CLIENT}`);
    const redirectUri = redirectUris.find((uri) => uri === single(query, 'redirect_uri'));
    if (redirectUri === undefined) return badRequest('redirect_uri must be a redirect URI of the realm');
    const state = requestSchema().shape.state.safeParse(single(query, 'state')).data;
    const request = readRequest(query);
    if ('error' in request) return seeOther(withQuery(redirectUri, { ...request, state }));
    const provider = await oidc.providers.metadata(issuer);
    if (!provider) return seeOther(withQuery(redirectUri, { ...UNAVAILABLE, state }));
    const begun = oidc.flow.begin({
      ...{ realmId, profileId, issuer, redirectUri, state: request.state },
      codeChallenge: request.code_challenge,
      reportsReplay: request.ep_report_callback_replay_error === 'true',
    });
    const { prompt, display, ui_locales, login_hint } = request;
    // A header has only ASCII characters.
    const location = withQuery(new URL(provider.authorizationEndpoint).href, {
      ...{ response_type: 'code', client_id, scope: provider.scope },
      redirect_uri: callbackUri(deps, realmId, profileId),
      ...{ state: begun.state, nonce: begun.nonce },
      ...{ code_challenge: begun.codeChallenge, code_challenge_method: 'S256' },
      response_mode: issuer === FORM_POST_ISSUER ? 'form_post' : undefined,
      ...{ prompt, display, ui_locales, login_hint },
    });
    return seeOther(location, cookieText(baseUrl, begun.cookie, LIMITS.oidcStateSeconds));
  };
}

/** Errors of providers that are passed on (RFC 6749, 4.1.2.1; OpenID Connect Core 1.0, 3.1.2.6). */
const PASSED_ON: ReadonlySet<string> = new Set(
  (
    'invalid_request unauthorized_client access_denied unsupported_response_type invalid_scope server_error ' +
    'temporarily_unavailable interaction_required login_required account_selection_required consent_required ' +
    'invalid_request_uri invalid_request_object request_not_supported request_uri_not_supported registration_not_supported'
  ).split(' '),
);

/** A code of this service for that of the provider, or an error. */
async function readResponse(
  query: URLSearchParams,
  opened: OpenedState,
  issuer: string,
  { providers, flow }: OidcDeps['oidc'],
) {
  const provider = query.has('iss') ? undefined : await providers.metadata(issuer);
  // Without the metadata, nobody knows whether the parameter was removed on the way (RFC 9207, 2.4).
  if (!query.has('iss') && !provider) return UNAVAILABLE;
  if (query.has('iss') ? single(query, 'iss') !== issuer : provider?.sendsIssuer)
    return failure('server_error', 'the response is not of the provider that was asked');
  const error = single(query, 'error') ?? '';
  if (query.has('error'))
    return failure(PASSED_ON.has(error) ? error : 'server_error', 'the provider did not sign the person in');
  const code = single(query, 'code') ?? '';
  if (!/^.{1,4096}$/s.test(code)) return failure('server_error', 'the provider sent no valid code');
  return { code: flow.sealCode(opened, code) };
}

/** Sends a browser that comes from the provider back to the caller, with a code of this service. */
function callback(deps: OidcDeps): CallHandler {
  const { oidc, baseUrl } = deps;
  return async (call) => {
    const place = await openPlace(call, deps);
    if (!place?.profile) return badRequest(UNKNOWN_PROFILE);
    const { query, realmId, redirectUris } = place;
    const { id, issuer } = place.profile;
    const opened = oidc.flow.openState(single(query, 'state') ?? '', realmId, id);
    if (!opened) return badRequest('state is not valid or has expired: sign in again');
    const redirectUri = oidc.flow.redirectUriOf(opened, issuer, redirectUris);
    if (!redirectUri) return badRequest('redirect_uri or issuer of the sign-in has changed: sign in again');
    const { state, cookie, reportsReplay } = opened;
    const prefix = `${cookieName(baseUrl, cookie.name)}=`;
    const sent = (call.request.headers.get('cookie') ?? '').split(';').map((pair) => pair.trim());
    const own = sent.filter((pair) => pair.startsWith(prefix)).map((pair) => pair.slice(prefix.length));
    if (!own.some((value) => oidc.flow.isCookieOf(opened, value))) {
      const text = 'the sign-in was begun in another browser, or is already completed';
      if (!reportsReplay) return badRequest(text);
      return seeOther(withQuery(redirectUri, { ...failure('callback_replay', text), state }));
    }
    const response = await readResponse(query, opened, issuer, oidc);
    return seeOther(
      withQuery(redirectUri, { ...response, state }),
      cookieText(baseUrl, { ...cookie, value: '' }, 0),
    );
  };
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
    const query = String(new URLSearchParams(fields));
    // No request could have it in its headers.
    if (query.length > LIMITS.headerBytesMax) return badRequest('the body is too long');
    return seeOther(`${callbackUri(deps, realm, id)}?${query}`);
  };
}

/** A discovery document for one profile of the realm, or for none. Its token endpoint is not served. */
function discoveryOf({ baseUrl, installation }: Site, realmId: Uuid, profileId: Uuid | undefined) {
  const path = `stores/${installation}/authentication-realms/${realmId}`;
  const at = (name: string) => `${baseUrl}/oidc-idp/${name}${path}`;
  return {
    issuer: at(''),
    authorization_endpoint: at('login/') + (profileId ? `?${PROFILE}=${profileId}` : ''),
    token_endpoint: at('token/'),
    jwks_uri: `${baseUrl}/.well-known/jwks.json`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['EdDSA'],
    scopes_supported: ['openid', 'email', 'profile'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['client_secret_basic'],
  };
}

const DISCOVERY_CACHING = 'public, max-age=300';

const discovery =
  (deps: OidcDeps): CallHandler =>
  async (call) => {
    const place = await openPlace(call, deps);
    if (!place) return NOT_FOUND_REPLY;
    return documentReply(discoveryOf(deps, place.realmId, place.profile?.id), DISCOVERY_CACHING);
  };

/** Route and documentation at a link of profiles. */
function endpoint(
  link: keyof typeof LINKS,
  summary: string,
  document: (baseUrl: string) => Omit<Documentation, 'summary' | 'tag' | 'path'>,
): Pick<Operation<OidcDeps>, 'path' | 'access' | 'document'> {
  const path = (LINKS[link].split('?')[0] ?? '').replace(/\{(\w+)\}/g, ':$1');
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
  const own = () => ({ summary, tag: oidcProfile.name, path: linkParameters(oidcProfile, names) });
  return { path, access: 'open', document: ({ baseUrl }) => ({ ...own(), ...document(baseUrl) }) };
}

/** The responses of an endpoint that sends browsers on. */
function redirects(description: string) {
  const fixed = Object.entries(NO_TRACE).map(([name, value]) => [
    name,
    fixedHeader('Keeps codes out of caches and referrers.', value),
  ]);
  const headers = { ...ALWAYS, ...Object.fromEntries(fixed) };
  const Location = header('Where the browser goes.', 'https://shop.example.com/callback?state=af0ifjsldkj');
  const cookie = optionalHeader(
    'From login to callback.',
    'authrealm-sign-in-0=; Max-Age=0',
    'sign-in-cookie',
  );
  const refusal = z.looseObject({ error: z.literal('invalid_request'), error_description: z.string() });
  return {
    '303': { description, headers: z.object({ ...headers, Location, 'Set-Cookie': cookie }) },
    '400': {
      description: 'The browser cannot be sent back. `errorDescription` repeats the text.',
      headers: z.object(headers),
      content: jsonContent(refusal, JSON.parse(String(badRequest(UNKNOWN_PROFILE).body))),
    },
  };
}

const providerParameters = () =>
  z.object(Object.fromEntries(PARAMETERS.map((name) => [name, withExample(z.string().optional(), name)])));

export const LOGIN_OPERATIONS: readonly Operation<OidcDeps>[] = [
  {
    ...{ name: 'begin-oidc-sign-in', method: 'GET', work: 'get', handle: login },
    ...endpoint('authorization-endpoint', 'Send a browser to the provider of a profile.', () => ({
      responses: redirects('To the provider; to the redirect URI with an error and `state`.'),
      query: z.object({
        [PROFILE]: withExample(z.string(), exampleIdOf(oidcProfile)),
        client_id: withExample(z.literal(CLIENT), CLIENT),
        redirect_uri: withExample(z.string(), 'https://shop.example.com/callback'),
        ...requestSchema().shape,
      }),
    })),
  },
  {
    ...{ name: 'get-oidc-discovery-document', method: 'GET', work: 'get', handle: discovery },
    ...endpoint(
      'client-discovery-url',
      'Get the document from which libraries build a login URL.',
      (baseUrl) => ({
        query: z.object({ [PROFILE]: withExample(z.string().optional(), exampleIdOf(oidcProfile)) }),
        success: {
          status: 200,
          description: 'The document (OpenID Connect Discovery 1.0, 3).',
          headers: {
            'Cache-Control': fixedHeader('How long the response may be cached.', DISCOVERY_CACHING),
          },
          content: jsonContent(
            z.looseObject({ issuer: link }),
            discoveryOf(
              { baseUrl, installation: INSTALLATION },
              exampleIdOf(realm),
              exampleIdOf(oidcProfile),
            ),
          ),
        },
        faults: ['not_found'],
      }),
    ),
  },
];

export const CALLBACK_OPERATIONS: readonly Operation<OidcDeps>[] = [
  {
    ...{ name: 'complete-oidc-sign-in', method: 'GET', work: 'get', handle: callback },
    ...endpoint('callback-endpoint', 'Send a browser back from the provider.', () => ({
      responses: redirects('To the redirect URI, with `state`, and with `code` or an error.'),
      query: providerParameters(),
    })),
  },
  {
    ...{ name: 'forward-oidc-callback', method: 'POST', body: 'form', handle: forwardForm },
    ...endpoint('callback-endpoint', 'Send a browser back from a provider that answers with a form.', () => ({
      responses: redirects('To the same path, with the fields as its query.'),
      body: { schema: providerParameters(), example: { code: 'code', state: 'state' } },
    })),
  },
];
