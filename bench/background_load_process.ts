import { ISSUER, OIDC_PROFILE, PASSWORD_PROFILE, USERS_PATH, userAt } from '../test/support/population.ts';
import type { BackgroundKind, BackgroundLoad, BackgroundResult, ResponseCounts } from './background_load.ts';
import { runAtRate, runConcurrently } from './callers.ts';

/** Runs a background load until standard input ends, then prints its `BackgroundResult` as JSON. */
const { url, token, background } = JSON.parse(process.argv[2] ?? '') as {
  readonly url: string;
  readonly token: string;
  readonly background: BackgroundLoad;
};

/** Responses that arrive later than this after the end are not counted. */
const DRAIN_MS_MAX = 250;
type MutableCounts = { -readonly [K in keyof ResponseCounts]: number };
const zeroCounts = (): MutableCounts => ({ succeeded: 0, unavailable: 0 });
const counts: Record<BackgroundKind, MutableCounts> = {
  links: zeroCounts(),
  passwords: zeroCounts(),
  totals: zeroCounts(),
  lists: zeroCounts(),
  searches: zeroCounts(),
};
const startedAt = performance.now();
const SALT = `${process.pid}-${performance.timeOrigin}`;
let requestNumber = 0;
const stop = new AbortController();

/** Sends one request and counts its response. Returns false for a 503. */
async function sendRequest(kind: BackgroundKind, path: string, body?: object): Promise<boolean> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const init = body ? { method: 'POST', headers, body: JSON.stringify({ data: body }) } : { headers };
  const response = await fetch(url + path, init);
  await response.arrayBuffer();
  if (!response.ok && response.status !== 503) throw new Error(`${path} returned ${response.status}`);
  counts[kind][response.ok ? 'succeeded' : 'unavailable'] += 1;
  return response.ok;
}

function createLink(): Promise<boolean> {
  requestNumber += 1;
  return sendRequest(
    'links',
    `${USERS_PATH}/${userAt(requestNumber % 1_000).user}/user-authentication-oidc-profile-info`,
    {
      type: 'user_authentication_oidc_profile_info',
      subject: `background|${SALT}-${requestNumber}`,
      issuer: ISSUER,
      oidc_profile_id: OIDC_PROFILE,
    },
  );
}

function listUsersWithTotal(): Promise<boolean> {
  return sendRequest('totals', `${USERS_PATH}?page%5Blimit%5D=25`);
}

/** A total is cached for a second per filter, so five filters in turn are counted once a second each. */
const LIST_FILTERS = 5;

function listUsers(): Promise<boolean> {
  requestNumber += 1;
  const since = `2026-01-01T00:00:00.00${requestNumber % LIST_FILTERS}Z`;
  return sendRequest(
    'lists',
    `${USERS_PATH}?page%5Blimit%5D=25&page%5Boffset%5D=50&filter=ge(created_at,${since})`,
  );
}

function searchUsers(): Promise<boolean> {
  return sendRequest('searches', `${USERS_PATH}?filter=ilike(email,*zz*)`);
}

function createUsername(): Promise<boolean> {
  requestNumber += 1;
  return sendRequest(
    'passwords',
    `${USERS_PATH}/${userAt(requestNumber % 1_000).user}/user-authentication-password-profile-info`,
    {
      type: 'user_authentication_password_profile_info',
      username: `background-${SALT}-${requestNumber}`,
      password: 'correct horse battery staple',
      password_profile_id: PASSWORD_PROFILE,
    },
  );
}

function runBackgroundLoad(): Promise<unknown> {
  switch (background.kind) {
    case 'links':
      return runAtRate(background.perSecond, createLink, stop.signal);
    case 'passwords':
      return runConcurrently(background.callers, createUsername, stop.signal);
    case 'totals':
      return runAtRate(background.perSecond, listUsersWithTotal, stop.signal);
    case 'lists':
      return runAtRate(background.perSecond, listUsers, stop.signal);
    case 'searches':
      return runConcurrently(background.callers, searchUsers, stop.signal);
  }
}

const completion = runBackgroundLoad();
for await (const _ of Bun.stdin.stream());
stop.abort();
const seconds = (performance.now() - startedAt) / 1_000;
await Promise.race([completion, Bun.sleep(DRAIN_MS_MAX)]);
const result: BackgroundResult = { seconds, counts: structuredClone(counts) };
await completion;
console.log(JSON.stringify(result));
