import { z } from 'zod';
import { exampleIdOf, INSTALLATION } from '../http/openapi/examples.ts';
import { linkParameters } from '../http/openapi/parameters.ts';
import { fixedHeader, jsonContent } from '../http/openapi/responses.ts';
import { lazyComponent, link } from '../http/openapi/schemas.ts';
import type { OidcDeps } from '../http/operations/oidc_request.ts';
import type { CallHandler } from '../http/pipeline/call.ts';
import type { Operation } from '../http/pipeline/operation.ts';
import { documentReply, NOT_FOUND_REPLY } from '../http/server/reply.ts';
import type { Uuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import { oidcProfile, realm } from '../model/resources.ts';
import { violatedRule } from '../model/rule.ts';
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

/** The client of the realm of account members. */
const CLIENT = 'account-management';
const PROFILE = 'elasticpath_commerce_cloud_profile_id';
/** This provider sends names and e-mail addresses with this response mode alone. */
const FORM_POST_ISSUER = 'https://appleid.apple.com';

const withExample = <S extends z.ZodType>(schema: S, example: string): S =>
  schema.meta({ param: { example } });
const matching = (pattern: RegExp, rule: string, example: string) =>
  withExample(z.string().regex(pattern, rule), example);
/** It is passed on to the provider. */
const forwarded = () =>
  withExample(
    z
      .string()
      .regex(/^.{1,255}$/s, 'must have at most 255 characters')
      .optional(),
    'login',
  );

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
    prompt: forwarded(),
    display: forwarded(),
    ui_locales: forwarded(),
    login_hint: forwarded(),
    ep_report_callback_replay_error: withExample(z.string().optional(), 'true'),
  }),
);

/** The errors of parameters (RFC 6749, 4.1.2.1). Those of all others are `invalid_request`. */
const ERRORS: Readonly<Record<string, string>> = {
  response_type: 'unsupported_response_type',
  scope: 'invalid_scope',
};

/** The request of a caller, or an error and its description. */
function readRequest(query: URLSearchParams): z.output<ReturnType<typeof requestSchema>> | [string, string] {
  const names = [...query.keys()];
  if (new Set(names).size < names.length) return ['invalid_request', 'a parameter is given more than once'];
  const parsed = requestSchema().safeParse(
    Object.fromEntries([...query].filter(([, value]) => value !== '')),
  );
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues as [z.core.$ZodIssue];
  const name = String(issue.path[0]);
  return [ERRORS[name] ?? 'invalid_request', `${name} ${violatedRule(issue)}`];
}

/** Sends a browser to the provider of a profile, with a `state` that holds what its return needs. */
function login(deps: OidcDeps): CallHandler {
  const { oidc, baseUrl } = deps;
  return async (call) => {
    const query = queryOf(call);
    const place = await signInPlace(call, single(query, PROFILE), deps);
    if (!place?.profile) return badRequest(UNKNOWN_PROFILE);
    const { issuer, client_id, id } = place.profile;
    if (single(query, 'client_id') !== CLIENT) return badRequest(`client_id must be ${CLIENT}`);
    const redirectUri = place.realm.redirect_uris.find((uri) => uri === single(query, 'redirect_uri'));
    if (redirectUri === undefined) return badRequest('redirect_uri must be a redirect URI of the realm');
    const back = ([error, text]: readonly [string, string]) => {
      const state = requestSchema().shape.state.safeParse(single(query, 'state')).data;
      return seeOther(redirectUri, Object.entries({ error, error_description: text, state }));
    };
    const request = readRequest(query);
    if (Array.isArray(request)) return back(request);
    const provider = await oidc.providers.metadata(issuer);
    if (!provider) return back(['temporarily_unavailable', 'the provider cannot be used at the moment']);
    const begun = oidc.flow.begin({
      ...{ realmId: place.realm.id, profileId: id, redirectUri, state: request.state },
      codeChallenge: request.code_challenge,
      reportsReplay: request.ep_report_callback_replay_error === 'true',
    });
    const { prompt, display, ui_locales, login_hint } = request;
    const parameters = {
      ...{ response_type: 'code', client_id, scope: provider.scope },
      redirect_uri: callbackUri(deps, place.realm.id, id),
      ...{ state: begun.state, nonce: begun.nonce },
      ...{ code_challenge: begun.codeChallenge, code_challenge_method: 'S256' },
      response_mode: issuer === FORM_POST_ISSUER ? 'form_post' : undefined,
      ...{ prompt, display, ui_locales, login_hint },
    };
    // A header has only ASCII characters.
    const endpoint = new URL(provider.authorizationEndpoint).href;
    const cookie = `${cookieName(baseUrl, begun)}=${begun.cookie.value}`;
    return seeOther(
      endpoint,
      Object.entries(parameters),
      cookieText(cookie, baseUrl, LIMITS.oidcStateSeconds),
    );
  };
}

/** A discovery document for one profile of the realm, or for none. Its token endpoint is not served. */
function discoveryOf(
  { baseUrl, installation }: Pick<OidcDeps, 'baseUrl' | 'installation'>,
  realmId: Uuid,
  profileId: Uuid | undefined,
) {
  const at = (name: string) =>
    `${baseUrl}/oidc-idp${name}/stores/${installation}/authentication-realms/${realmId}`;
  return {
    issuer: at(''),
    authorization_endpoint: at('/login') + (profileId ? `?${PROFILE}=${profileId}` : ''),
    token_endpoint: at('/token'),
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

export const LOGIN_OPERATIONS: readonly Operation<OidcDeps>[] = [
  {
    name: 'begin-oidc-sign-in',
    method: 'GET',
    path: pathOfLink('authorization-endpoint'),
    access: 'open',
    work: 'get',
    handle: login,
    document: () => ({
      summary: 'Send a browser to the provider of a profile, to sign in an account member.',
      ...browserDocumentation(
        ['store', 'realm'],
        'To the provider; to the redirect URI with `error`, `error_description` and `state`.',
      ),
      query: z.object({
        [PROFILE]: withExample(z.string(), exampleIdOf(oidcProfile)),
        client_id: withExample(z.literal(CLIENT), CLIENT),
        redirect_uri: withExample(z.string(), 'https://shop.example.com/callback'),
        ...requestSchema().shape,
      }),
    }),
  },
  {
    name: 'get-oidc-discovery-document',
    method: 'GET',
    path: pathOfLink('client-discovery-url'),
    access: 'open',
    work: 'get',
    handle: (deps) => async (call) => {
      const place = await signInPlace(call, single(queryOf(call), PROFILE), deps);
      if (!place) return NOT_FOUND_REPLY;
      return documentReply(discoveryOf(deps, place.realm.id, place.profile?.id), DISCOVERY_CACHING);
    },
    document: ({ baseUrl }) => ({
      summary: 'Get the document with which OpenID libraries make the URL of a login.',
      tag: oidcProfile.name,
      path: linkParameters(oidcProfile, ['store', 'realm']),
      query: z.object({ [PROFILE]: withExample(z.string().optional(), exampleIdOf(oidcProfile)) }),
      success: {
        status: 200,
        description: 'The document (OpenID Connect Discovery 1.0, 3).',
        headers: { 'Cache-Control': fixedHeader('How long the response may be cached.', DISCOVERY_CACHING) },
        content: jsonContent(
          z.looseObject({ issuer: link, authorization_endpoint: link }),
          discoveryOf({ baseUrl, installation: INSTALLATION }, exampleIdOf(realm), exampleIdOf(oidcProfile)),
        ),
      },
      faults: ['not_found'],
    }),
  },
];
