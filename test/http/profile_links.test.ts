import { expect, test } from 'bun:test';
import { systemClock } from '../../src/ops/process/clock.ts';
import { createFixture, startService } from '../support/service.ts';

/** The links of one profile, over all users of a realm (docs/filters.md). */

interface Page {
  readonly data: readonly { readonly id: string }[];
  readonly meta: object;
  readonly links: Readonly<Record<string, string | null>>;
}

const service = await startService();
const first = await createFixture(service.db);
const { realm, oidcProfile, passwordProfile } = first;
const second = await createFixture(service.db, { realm, oidcProfile, passwordProfile });
const third = await createFixture(service.db, { realm, oidcProfile, passwordProfile });
await createFixture(service.db, { realm });
const all = [third, second, first];
const token = await service.token('profile-infos:read');
const listOf = (kind: string) =>
  `/v2/authentication-realms/${realm}/user-authentication-${kind}-profile-info`;

async function read(path: string): Promise<Page> {
  const answer = await service.get(path, token);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Page;
}

test.each([
  ['oidc', `eq(oidc_profile_id,${oidcProfile})`, all.map(({ oidcLink }) => oidcLink)],
  ['password', `eq(password_profile_id,${passwordProfile})`, all.map(({ passwordLink }) => passwordLink)],
])(
  'the links of one %s profile are listed over all users, newest first, and page by page',
  async (kind, filter, ids) => {
    const whole = await read(`${listOf(kind)}?filter=${filter}`);
    expect(whole.data.map(({ id }) => id)).toEqual(ids);
    expect(whole.meta).toMatchObject({ results: { total: 3 } });
    const found: string[] = [];
    let next: string | null | undefined = `${listOf(kind)}?filter=${filter}&page[limit]=2&page[after]=`;
    while (next) {
      const page = await read(next);
      found.push(...page.data.map(({ id }) => id));
      next = page.links.next;
    }
    expect(found).toEqual(ids);
  },
);

test('the links of a profile that does not exist, or of another realm, are an empty page', async () => {
  const other = await createFixture(service.db);
  for (const profile of [systemClock.mintId(), other.oidcProfile])
    expect((await read(`${listOf('oidc')}?filter=eq(oidc_profile_id,${profile})`)).data).toEqual([]);
});
