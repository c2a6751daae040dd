import { expect, setDefaultTimeout, test } from 'bun:test';
import { realm } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { runDoctorOn } from '../support/doctor_report.ts';
import { createOidcProfile } from '../support/oidc_sign_in.ts';
import { startService } from '../support/service.ts';
import { createSettingsRealms } from '../support/settings_realms.ts';
import {
  createPassword,
  enableSelfSignup,
  requestTokens,
  selfSignupBody,
  signInTokenOf,
} from '../support/sign_in.ts';

setDefaultTimeout(60_000);

/** What `doctor` says of sign-in through providers and of self-signup. */

const service = await startService();
const { accounts, buyers } = await createSettingsRealms(service.db);
const { profile } = await createPassword(service.db, accounts);
const token = await signInTokenOf(service, { scope: 'sign-in sign-up settings:write realms:write' });

/** What `doctor` reports with this base URL. No realm that it names is a problem. */
async function signInReport(baseUrl: string) {
  const { healthy, report } = await runDoctorOn(service.database, { AUTHREALM_BASE_URL: baseUrl });
  expect(healthy).toBe(true);
  const { facts, notes } = report('sign-in');
  return { facts, notes: notes.map(({ says, realm: named }) => [says.split(/,? because|:/)[0], named]) };
}

async function setRealm(id: string, members: object): Promise<void> {
  const data = { type: realm.type, ...members };
  expect((await service.put(`/v2/authentication-realms/${id}`, token, { data })).status).toBe(200);
}

async function signUp(): Promise<string> {
  const username = `jill-${systemClock.mintId()}@example.com`;
  const body = selfSignupBody(profile, username, { email: username });
  expect((await requestTokens(service, token, body)).status).toBe(201);
  return username;
}

test('doctor reports how many users signed up in the last hour, while self-signup is enabled', async () => {
  expect((await signInReport('https://id.example')).facts).toEqual([]);
  await enableSelfSignup(service, token);
  const [early] = [await signUp(), await signUp(), await signUp()];
  // Users whom a caller made are none.
  await createPassword(service.db, accounts, { profile });
  const moved = await service.database.tamper(
    'update user_info set created_at = created_at - 7200000 where email = ?',
    early,
  );
  expect(moved).toBe(1);
  const found = await signInReport('https://id.example');
  expect(found).toEqual({ facts: [`2 sign-ups in the last hour in realm ${accounts}`], notes: [] });
  await enableSelfSignup(service, token, false);
  expect((await signInReport('https://id.example')).facts).toEqual([]);
});

test('doctor notes a realm of policy api_only whose profiles have several issuers', async () => {
  await setRealm(accounts, { duplicate_email_policy: 'api_only' });
  await createOidcProfile(service.db, accounts, 'https://login.example');
  await createOidcProfile(service.db, accounts, 'https://login.example', { client_id: 'com.example.app' });
  await createOidcProfile(service.db, buyers, 'https://login.example');
  await createOidcProfile(service.db, buyers, 'https://other.example');
  expect((await signInReport('https://id.example')).notes).toEqual([]);
  await createOidcProfile(service.db, accounts, 'https://other.example');
  const note = ['each of 2 issuers can claim any user whose e-mail address is vouched for', accounts];
  expect((await signInReport('https://id.example')).notes).toEqual([note]);
  await setRealm(accounts, { duplicate_email_policy: 'allowed' });
  expect((await signInReport('https://id.example')).notes).toEqual([]);
});

test('doctor notes a base URL of http that is not on this machine, where a realm has redirect URIs and profiles', async () => {
  const shop = await createRealmWith('https://shop.example.com/callback');
  await createRealmWith();
  for (const baseUrl of ['https://id.example', 'http://127.0.0.1:8080', 'http://localhost:8080'])
    expect((await signInReport(baseUrl)).notes).toEqual([]);
  const note = ['if this is the account realm, its login URLs lead nowhere', shop];
  expect((await signInReport('http://id.example')).notes).toEqual([note]);
});

async function createRealmWith(...redirect_uris: readonly string[]): Promise<string> {
  const data = { type: realm.type, name: 'Shop', redirect_uris };
  const answer = await service.post('/v2/authentication-realms', token, { data });
  const { id } = ((await answer.json()) as { data: { id: typeof accounts } }).data;
  await createOidcProfile(service.db, id, 'https://login.example');
  return id;
}
