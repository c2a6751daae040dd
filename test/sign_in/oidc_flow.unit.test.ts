import { expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { openKeyring } from '../../src/access/keys/keyring.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { type OpenedState, openOidcFlow } from '../../src/sign_in/oidc_flow.ts';

const MASTER = systemClock.randomBytes(32);
const VERIFIER = systemClock.randomBytes(32).toBase64({ alphabet: 'base64url', omitPadding: true });
const s256 = (text: string) => createHash('sha256').update(text).digest('base64url');
const REQUEST = {
  realmId: systemClock.mintId(),
  profileId: systemClock.mintId(),
  issuer: 'https://login.example',
  redirectUri: 'https://shop.example/callback?lang=en',
  state: 'a state of the "storefront"',
  codeChallenge: s256(VERIFIER),
  reportsReplay: false,
};
const { realmId, profileId, issuer } = REQUEST;
/** Codes as providers send them: of 32 bytes, and one of Entra ID. */
const CODE = 'x'.repeat(42).concat('w');
const LONG_CODE = 'x'.repeat(2_318).concat('w');

/** Flows with a clock that only `pass` advances. */
function flowsAt(masters: readonly Uint8Array[] = [MASTER]) {
  let at = 1_800_000_000_000;
  const keyring = openKeyring(masters, systemClock);
  const flow = openOidcFlow(keyring, { ...systemClock, now: () => at });
  const pass = (ms: number) => {
    at += ms;
  };
  return { pass, keyring, ...flow };
}

const { begin, openState, sealCode, openCode, isCookieOf, ...flow } = flowsAt();
const opened = (state: string) => openState(state, realmId, profileId) as OpenedState;

test('a state carries what the callback needs, and neither verifier nor nonce', () => {
  const begun = begin(REQUEST);
  const state = opened(begun.state);
  expect(state).toMatchObject({ realmId, profileId, state: REQUEST.state, reportsReplay: false });
  expect(state.cookie).toEqual(begun.cookie);
  expect(opened(begin({ ...REQUEST, reportsReplay: true }).state).reportsReplay).toBe(true);
  const code = openCode(sealCode(state, CODE), realmId);
  const { codeVerifier, nonce } = code ?? { codeVerifier: '', nonce: '' };
  expect([codeVerifier, nonce]).toEqual([expect.stringMatching(/^[\w-]{43}$/), begun.nonce]);
  expect(begun.codeChallenge).toBe(s256(codeVerifier));
  const other = begin(REQUEST);
  expect([other.nonce, other.codeChallenge, other.cookie.value]).not.toContain(begun.nonce);
  expect(new Set([begun.nonce, other.nonce, begun.codeChallenge, other.codeChallenge]).size).toBe(4);
});

test('a code carries the profile, the code of the provider and the code challenge of the caller', () => {
  const state = opened(begin(REQUEST).state);
  for (const providerCode of [CODE, LONG_CODE, 'not canonical', 'x'.repeat(4_096), 'ü€', `${CODE}=`]) {
    const code = openCode(sealCode(state, providerCode), realmId);
    expect(code).toMatchObject({ profileId, providerCode, codeChallenge: REQUEST.codeChallenge });
    if (!code) continue;
    expect(flow.isVerifierOf(code, VERIFIER)).toBe(true);
    expect(flow.isVerifierOf(code, `${VERIFIER}x`)).toBe(false);
    expect(flow.redirectUriOf(code, issuer, ['https://shop.example/', REQUEST.redirectUri])).toBe(
      REQUEST.redirectUri,
    );
    expect(flow.redirectUriOf(code, issuer, ['https://shop.example/callback'])).toBeUndefined();
  }
});

test('a state or code that was made for another issuer leads to no redirect URI', () => {
  const state = opened(begin(REQUEST).state);
  for (const content of [state, openCode(sealCode(state, CODE), realmId)])
    expect(
      [issuer, `${issuer}/`, 'https://evil.example'].map(
        (each) => content && flow.redirectUriOf(content, each, [REQUEST.redirectUri]),
      ),
    ).toEqual([REQUEST.redirectUri, undefined, undefined]);
});

test('a provider code of 43 characters makes a code of 230, and one of 2,319 a code of 2,506', () => {
  const state = opened(begin(REQUEST).state);
  expect([CODE, LONG_CODE].map((code) => sealCode(state, code).length)).toEqual([230, 2_506]);
});

test('the cookie of a flow has one of 16 names, and only its value is accepted', () => {
  const begun = Array.from({ length: 500 }, () => begin(REQUEST));
  const names = begun.map(({ cookie }) => cookie.name);
  expect([...new Set(names)].sort()).toEqual(
    Array.from({ length: 16 }, (_, digit) => `authrealm-sign-in-${digit.toString(16)}`),
  );
  const [first, second] = begun;
  const state = opened(first?.state ?? '');
  expect(isCookieOf(state, first?.cookie.value ?? '')).toBe(true);
  for (const wrong of [second?.cookie.value ?? '', '', 'ü'.repeat(22), `${first?.cookie.value}=`])
    expect([wrong, isCookieOf(state, wrong)]).toEqual([wrong, false]);
});

test('a state or code with one other character is not valid', () => {
  const { state } = begin(REQUEST);
  const code = sealCode(opened(state), CODE);
  for (let at = 0; at < state.length; at += 1)
    expect([at, openState(changed(state, at), realmId, profileId)]).toEqual([at, undefined]);
  for (let at = 0; at < code.length; at += 1)
    expect([at, openCode(changed(code, at), realmId)]).toEqual([at, undefined]);
  for (const wrong of ['', 'x', `${state}=`, `${state} `, `${state}A`, state.slice(0, -1), state.slice(4)])
    expect([wrong, openState(wrong, realmId, profileId)]).toEqual([wrong, undefined]);
});

/** Another character, which may be the next one: then only unused bits of the last one change. */
function changed(text: string, at: number): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const next = alphabet[alphabet.indexOf(text[at] ?? '') ^ 1];
  return text.slice(0, at) + next + text.slice(at + 1);
}

test('a state of another realm or profile, and a code of another realm, is not valid', () => {
  const { state } = begin(REQUEST);
  const code = sealCode(opened(state), CODE);
  expect(openState(state, systemClock.mintId(), profileId)).toBeUndefined();
  expect(openState(state, realmId, systemClock.mintId())).toBeUndefined();
  expect(openCode(code, systemClock.mintId())).toBeUndefined();
});

test('a state is no code, and a code is no state', () => {
  const { state } = begin(REQUEST);
  expect(openCode(state, realmId)).toBeUndefined();
  expect(openState(sealCode(opened(state), CODE), realmId, profileId)).toBeUndefined();
});

test('a state is valid for 10 minutes, and a code for 60 seconds', () => {
  const at = flowsAt();
  const { state } = at.begin(REQUEST);
  at.pass(LIMITS.oidcStateSeconds * 1_000 - 1);
  const old = at.openState(state, realmId, profileId);
  expect(old).toBeDefined();
  at.pass(1);
  expect(at.openState(state, realmId, profileId)).toBeUndefined();
  const code = at.sealCode(old as OpenedState, CODE);
  at.pass(LIMITS.oidcCodeSeconds * 1_000 - 1);
  expect(at.openCode(code, realmId)).toBeDefined();
  at.pass(1);
  expect(at.openCode(code, realmId)).toBeUndefined();
});

test('a state or code whose time is more than 30 seconds ahead is not valid', () => {
  const at = flowsAt();
  const { state } = at.begin(REQUEST);
  const code = at.sealCode(at.openState(state, realmId, profileId) as OpenedState, CODE);
  at.pass(-30_000);
  expect([at.openState(state, realmId, profileId), at.openCode(code, realmId)]).not.toContain(undefined);
  at.pass(-1);
  expect(at.openState(state, realmId, profileId)).toBeUndefined();
  expect(at.openCode(code, realmId)).toBeUndefined();
});

test('a state of another installation is not valid, and one of the previous master key is until that key is gone', () => {
  const next = systemClock.randomBytes(32);
  const { state } = begin(REQUEST);
  expect(flowsAt([next]).openState(state, realmId, profileId)).toBeUndefined();
  expect(flowsAt([next, MASTER]).openState(state, realmId, profileId)).toBeDefined();
});

test('nothing of a flow can be read in its state or code', () => {
  const { state } = begin(REQUEST);
  const code = sealCode(opened(state), 'a code of a provider');
  for (const sealed of [state, code]) {
    const bytes = Buffer.from(sealed, 'base64url');
    for (const text of [REQUEST.state, 'a code of a provider', REQUEST.redirectUri])
      expect(bytes.includes(text)).toBe(false);
    expect(bytes.includes(Buffer.from(REQUEST.codeChallenge, 'base64url'))).toBe(false);
  }
});
