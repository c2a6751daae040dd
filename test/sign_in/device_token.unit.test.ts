import { expect, test } from 'bun:test';
import { openLogKeys } from '../../src/log/keys.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { SignInName } from '../../src/sign_in/credentials.ts';
import { openDeviceTokens } from '../../src/sign_in/device_token.ts';

const DAY_MS = 86_400_000;
const KEYS = openLogKeys(new Uint8Array(32).fill(1), systemClock);
const NAME: SignInName = {
  realmId: systemClock.mintId(),
  profileId: systemClock.mintId(),
  usernameKey: 'JANE',
};
const VERSION = systemClock.mintRevision();

/** Tokens with a clock that only `pass` advances, from the beginning of a day. */
function tokensAt(keys = KEYS) {
  let at = 20_000 * DAY_MS;
  const tokens = openDeviceTokens(keys, { ...systemClock, now: () => at });
  const pass = (ms: number) => {
    at += ms;
  };
  return { pass, ...tokens };
}

test('a device token is valid for the realm, profile and username it was made for, and no other', () => {
  const { make, verify } = tokensAt();
  const token = make(NAME, VERSION);
  expect(verify(token, NAME)).toEqual({ id: expect.stringMatching(/^[\w-]{22}$/), version: VERSION });
  for (const change of [
    { realmId: systemClock.mintId() },
    { profileId: systemClock.mintId() },
    { usernameKey: 'JOHN' },
  ])
    expect([change, verify(token, { ...NAME, ...change })]).toEqual([change, undefined]);
});

test.each([
  ['another version', systemClock.mintRevision()],
  ['no version', ''],
])('a device token whose password version is replaced by %s is not valid', (_, version) => {
  const { make, verify } = tokensAt();
  expect(verify(version + make(NAME, VERSION).slice(VERSION.length), NAME)).toBeUndefined();
  expect(verify(make(NAME, version), NAME)?.version).toBe(version);
});

test('each device token of a name has an identifier of its own', () => {
  const { make, verify } = tokensAt();
  const ids = Array.from({ length: 100 }, () => verify(make(NAME, VERSION), NAME)?.id);
  expect(new Set(ids).size).toBe(100);
});

test('a device token is valid for 180 days after the day of its issue, and not on the 181st', () => {
  const { make, verify, pass } = tokensAt();
  const token = make(NAME, VERSION);
  pass(181 * DAY_MS - 1);
  expect(verify(token, NAME)).toBeDefined();
  pass(1);
  expect(verify(token, NAME)).toBeUndefined();
});

test('a device token of another installation, a changed one and a text that is none are not valid', () => {
  const { make, verify } = tokensAt();
  const token = make(NAME, VERSION);
  const other = tokensAt(openLogKeys(new Uint8Array(32).fill(2), systemClock));
  expect(other.verify(token, NAME)).toBeUndefined();
  for (let at = 0; at < token.length - 1; at += 1) {
    const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
    expect([at, verify(changed, NAME)]).toEqual([at, undefined]);
  }
  for (const text of ['', 'x', token.slice(1), `${token}A`, ` ${token}`, token.replace(/^./, '.')])
    expect([text, verify(text, NAME)]).toEqual([text, undefined]);
});
