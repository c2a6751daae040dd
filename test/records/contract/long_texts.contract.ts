import { describe, expect, test } from 'bun:test';
import { parseFilter } from '../../../src/model/filter/filter.ts';
import type { Uuid } from '../../../src/model/id.ts';
import { oidcProfileInfo, passwordProfileInfo, user } from '../../../src/model/resources.ts';
import { foldedKey } from '../../../src/model/text/folded_key.ts';
import { KEY_BYTES_MAX } from '../../../src/model/text/folding.ts';
import { userMembers } from '../../support/service.ts';
import { lookupKeyOf } from './find.contract.ts';
import {
  commitWrites,
  insert,
  mintId,
  type OpenStore,
  oidcLink,
  openForTests,
  usernameLink,
  WRITTEN,
} from './store_fixtures.ts';

const LENGTH_MAX = 255;
const ISSUER_MAX = 1024;

/** Random code points of a range: they do not compress. */
function randomText(first: number, last: number, length = LENGTH_MAX): string {
  const points = crypto.getRandomValues(new Uint32Array(length));
  return String.fromCodePoint(...points.map((each) => first + (each % (last - first + 1))));
}

/** The character with the longest folding: eighteen characters. */
const LIGATURE = '\ufdfa';

/** A name of the maximum length, of different characters with the longest foldings. */
function mostFolding(): string {
  const upper = Array.from({ length: 0x30000 - 0xe000 }, (_, at) => String.fromCodePoint(0xe000 + at));
  const squares = Array.from({ length: 0xd00 }, (_, at) => String.fromCodePoint(0x2700 + at));
  const bytes = new Map([...upper, ...squares].map((each) => [each, Buffer.byteLength(foldedKey(each))]));
  return [...bytes]
    .sort(([, one], [, other]) => other - one)
    .slice(0, LENGTH_MAX)
    .map(([each]) => each)
    .join('');
}

const NAMES: Readonly<Record<string, string>> = {
  'one letter': 'x'.repeat(LENGTH_MAX),
  'ideographs of four bytes': randomText(0x20000, 0x2a6df),
  'square characters that fold to words': randomText(0x3300, 0x33ff),
  // Some of them fold to a blank first, which is trimmed at the start of a name.
  'Arabic ligatures': `x${randomText(0xfc00, 0xfd3d, LENGTH_MAX - 1)}`,
  'the character with the longest folding, repeated': LIGATURE.repeat(LENGTH_MAX),
  'different characters with long foldings': mostFolding(),
  'incompressible characters, then the character with the longest folding':
    randomText(0x20000, 0x2a6df, 200) + LIGATURE.repeat(LENGTH_MAX - 200),
};

/** A Store must index texts of the maximum length, whatever the engine's limit of an index entry is. */
export function longTextsContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`long texts contract: ${name}`, () => {
    const { store, fixture } = openForTests(open);

    test('identities that differ only in their last character are distinct, and each is unique', async () => {
      const path = crypto.getRandomValues(Buffer.alloc(ISSUER_MAX)).toString('base64url');
      const issuer = `https://login.example.com/${path}`.slice(0, ISSUER_MAX);
      const stem = randomText(0x20000, 0x2a6df, LENGTH_MAX - 1);
      const linkOf = (subject: string) => {
        const link = oidcLink(fixture, subject);
        return { ...link, record: { ...link.record, issuer } };
      };
      const [one, other] = [linkOf(`${stem}\u{20000}`), linkOf(`${stem}\u{20001}`)] as const;
      expect(await commitWrites(store, one, other)).toEqual(WRITTEN);
      for (const { key, record } of [one, other]) {
        const { subject } = record as { subject?: string };
        const identity = lookupKeyOf(oidcProfileInfo, { issuer, subject: subject ?? '' });
        const found = await store.find(oidcProfileInfo, fixture.realm, identity);
        expect(found?.key).toEqual(key);
      }
      expect(await commitWrites(store, linkOf(`${stem}\u{20001}`))).toEqual({
        kind: 'unique',
        members: ['issuer', 'subject'],
      });
    });

    test('usernames that differ only in their last character are distinct, and each is unique', async () => {
      const stem = randomText(0x20000, 0x2a6df, KEY_BYTES_MAX / 4 - 1);
      const [one, other] = [
        usernameLink(fixture, `${stem}\u{20000}`),
        usernameLink(fixture, `${stem}\u{20001}`),
      ] as const;
      expect(await commitWrites(store, one, other)).toEqual(WRITTEN);
      const username = foldedKey(`${stem}\u{20001}`);
      const found = await store.find(
        passwordProfileInfo,
        fixture.realm,
        lookupKeyOf(passwordProfileInfo, { username }),
      );
      expect(found?.key).toEqual(other.key);
      expect((await commitWrites(store, usernameLink(fixture, `${stem}\u{20000}`))).kind).toBe('unique');
    });

    test.each(Object.entries(NAMES))(
      'a name of maximum length is stored and found by filters: %s',
      async (_, longest) => {
        expect([...longest]).toHaveLength(LENGTH_MAX);
        const named = insert(user, [fixture.realm, mintId()], { ...userMembers, name: longest });
        expect(await commitWrites(store, named)).toEqual(WRITTEN);
        const listed = (filter: string) =>
          store.list(user, [fixture.realm], {
            filter: parseFilter(filter, user.filterables ?? {}),
            sort: { by: 'created_at', isDescending: false },
            page: { kind: 'offset', offset: 0, limit: 10 },
          });
        const head = [...longest].slice(0, 20).join('');
        for (const filter of [`eq(name,${longest})`, `like(name,${head}*)`, `ilike(name,*${head}*)`]) {
          const found = await listed(filter);
          expect(found?.items.map(({ record }): Uuid => record.id)).toContain(named.record.id);
        }
      },
    );
  });
}
