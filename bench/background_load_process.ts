import { ISSUER, OIDC_PROFILE, PASSWORD_PROFILE, USERS_PATH, userAt } from '../test/support/population.ts';
import type { Company, Count, Treatment, Work } from './background_load.ts';

/** Keeps a service company until standard input ends; then tells on standard output how it was treated. */
const { url, token, company } = JSON.parse(process.argv[2] ?? '') as {
  readonly url: string;
  readonly token: string;
  readonly company: Company;
};

const PASSWORDS_IN_FLIGHT = 80;
const PAUSE_MS = 1;
/** What was begun at the very end is answered within this time, or was not in time. */
const GRACE_MS = 250;
/** What a 503 asks for in Retry-After. */
const RETRY_AFTER_MS = 1_000;
type Counted = { -readonly [K in keyof Count]: number };
const none = (): Counted => ({ done: 0, deferred: 0 });
const counts: Record<Work, Counted> = { links: none(), passwords: none(), lists: none(), searches: none() };
const startedAt = performance.now();
const SALT = `${process.pid}-${performance.timeOrigin}`;
let count = 0;
let isOver = false;

/** Answers whether it was done; else it must come again later. */
async function ask(work: Work, path: string, body?: object): Promise<boolean> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const init = body ? { method: 'POST', headers, body: JSON.stringify({ data: body }) } : { headers };
  const answer = await fetch(url + path, init);
  await answer.arrayBuffer();
  if (!answer.ok && answer.status !== 503) throw new Error(`${path} was answered ${answer.status}`);
  counts[work][answer.ok ? 'done' : 'deferred'] += 1;
  return answer.ok;
}

function createLink(): Promise<boolean> {
  count += 1;
  return ask('links', `${USERS_PATH}/${userAt(count % 1_000).user}/user-authentication-oidc-profile-info`, {
    type: 'user_authentication_oidc_profile_info',
    subject: `company|${SALT}-${count}`,
    issuer: ISSUER,
    oidc_profile_id: OIDC_PROFILE,
  });
}

/** Totals are kept a second for each filter: of five filters, each is counted once a second. */
const LIST_FILTERS = 5;

function list(): Promise<boolean> {
  count += 1;
  const since = `2026-01-01T00:00:00.00${count % LIST_FILTERS}Z`;
  return ask('lists', `${USERS_PATH}?page%5Blimit%5D=25&page%5Boffset%5D=50&filter=ge(created_at,${since})`);
}

function createUsername(): Promise<boolean> {
  count += 1;
  return ask(
    'passwords',
    `${USERS_PATH}/${userAt(count % 1_000).user}/user-authentication-password-profile-info`,
    {
      type: 'user_authentication_password_profile_info',
      username: `company-${SALT}-${count}`,
      password: 'correct horse battery staple',
      password_profile_id: PASSWORD_PROFILE,
    },
  );
}

/** Begins one piece of work after the other at an even pace, without waiting for the one before. */
async function paced(perSecond: number, work: () => Promise<boolean>): Promise<void> {
  const start = performance.now();
  const running = new Set<Promise<boolean>>();
  for (let begun = 0; !isOver; ) {
    const due = ((performance.now() - start) / 1_000) * perSecond;
    for (; begun < due; begun += 1) {
      const one = work().finally(() => running.delete(one));
      running.add(one);
    }
    await Bun.sleep(PAUSE_MS);
  }
  await Promise.all(running);
}

/** So many callers, each of whom asks again when it has been answered. */
async function busy(callers: number, work: () => Promise<boolean>): Promise<void> {
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (!isOver) if (!(await work())) await Bun.sleep(RETRY_AFTER_MS);
    }),
  );
}

function keep(): Promise<unknown> {
  switch (company.kind) {
    case 'writes':
      return Promise.all([paced(company.perSecond, createLink), busy(PASSWORDS_IN_FLIGHT, createUsername)]);
    case 'lists':
      return paced(company.perSecond, list);
    case 'searches':
      return busy(company.callers, () => ask('searches', `${USERS_PATH}?filter=ilike(email,*zz*)`));
  }
}

const kept = keep();
for await (const _ of Bun.stdin.stream());
isOver = true;
const seconds = (performance.now() - startedAt) / 1_000;
await Promise.race([kept, Bun.sleep(GRACE_MS)]);
const treatment: Treatment = { seconds, counts: structuredClone(counts) };
await kept;
console.log(JSON.stringify(treatment));
