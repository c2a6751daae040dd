import { expect, test } from 'bun:test';
import { openLogKeys } from '../../../src/audit/log_keys.ts';
import { type DeviceOwner, openDeviceTokens } from '../../../src/auth/sign_in/device_token.ts';
import type { Uuid } from '../../../src/domain/id.ts';
import { systemClock } from '../../../src/platform/clock.ts';

const DAY_MS = 86_400_000;
const KEYS = openLogKeys(new Uint8Array(32).fill(1), systemClock);
const OWNER: DeviceOwner = {
  realmId: systemClock.mintId(),
  infoId: systemClock.mintId(),
  version: 'AAAAAAAAAAAAAAAAAAAAAA',
};

/** Tokens with a clock that only `pass` advances, from the beginning of a day. */
function tokensAt(keys = KEYS) {
  let at = 20_000 * DAY_MS;
  const tokens = openDeviceTokens(keys, { ...systemClock, now: () => at });
  const pass = (ms: number) => {
    at += ms;
  };
  return { pass, ...tokens };
}

test('a device token is valid for the password profile info, realm and password version it was made for, and no other', () => {
  const { make, verify } = tokensAt();
  const token = make(OWNER);
  expect(verify(token, OWNER)).toMatchObject({ id: expect.stringMatching(/^[\w-]{22}$/) });
  for (const change of [
    { realmId: systemClock.mintId() },
    { infoId: systemClock.mintId() },
    { version: 'BBBBBBBBBBBBBBBBBBBBBB' },
  ])
    expect([change, verify(token, { ...OWNER, ...change })]).toEqual([change, undefined]);
  expect(verify(token, undefined)).toBeUndefined();
});

test('no device token is valid without an owner, whatever it was made for', () => {
  const { make, verify } = tokensAt();
  const nobody = { realmId: '' as Uuid, infoId: '' as Uuid, version: '' };
  expect(verify(make(nobody), undefined)).toBeUndefined();
});

test('each device token of an owner has an identifier of its own', () => {
  const { make, verify } = tokensAt();
  const ids = Array.from({ length: 100 }, () => verify(make(OWNER), OWNER)?.id);
  expect(new Set(ids).size).toBe(100);
});

test('a device token is valid for 180 days after the day of its issue, and not on the 181st', () => {
  const { make, verify, pass } = tokensAt();
  const token = make(OWNER);
  pass(181 * DAY_MS - 1);
  expect(verify(token, OWNER)).toBeDefined();
  pass(1);
  expect(verify(token, OWNER)).toBeUndefined();
});

test('a device token of another installation, a changed one and a text that is none are not valid', () => {
  const { make, verify } = tokensAt();
  const token = make(OWNER);
  const other = tokensAt(openLogKeys(new Uint8Array(32).fill(2), systemClock));
  expect(other.verify(token, OWNER)).toBeUndefined();
  for (let at = 0; at < token.length - 1; at += 1) {
    const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
    expect([at, verify(changed, OWNER)]).toEqual([at, undefined]);
  }
  for (const text of ['', 'x', token.slice(1), `${token}A`, ` ${token}`, token.replace(/^./, '.')])
    expect([text, verify(text, OWNER)]).toEqual([text, undefined]);
});
