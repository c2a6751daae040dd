import { describe, expect, test } from 'bun:test';
import { parseFilter } from '../../../src/model/filter/filter.ts';
import type { Uuid } from '../../../src/model/id.ts';
import type { Key, Resource } from '../../../src/model/resource.ts';
import { passwordProfileInfo, user } from '../../../src/model/resources.ts';
import type { RealmSearch, RealmSearchPage } from '../../../src/model/store.ts';
import { foldedKey } from '../../../src/model/text/folded_key.ts';
import { WORD_CHARACTERS_MAX, WORD_SEPARATORS, wordsOf } from '../../../src/model/text/words.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { userMembers } from '../../support/service.ts';
import {
  changeFor,
  commitWrites,
  createRealmFixture,
  insert,
  mintId,
  type OpenStore,
  openForTests,
  removalOf,
  removeRecord,
  usernameLink,
} from './store_fixtures.ts';

/** Names of 255 characters in five scripts. */
const SCRIPTS: Readonly<Record<string, string>> = {
  Latin: 'Þórdís Ægisdóttir ',
  Greek: 'Ὀδυσσεύς Λαερτιάδης ',
  Cyrillic: 'Анна-Мария Кузнецова ',
  Devanagari: 'श्रीमती लक्ष्मी ',
  Han: '欧阳夏丹の長い名前',
};

/** Names, and how somebody types them whose keyboard has no such letters. */
const ACCENTS: readonly (readonly [written: string, typed: string])[] = [
  ['José', 'jose'],
  ['Müller', 'Muller'],
  ['Søren', 'soren'],
  ['Łukasz', 'lukasz'],
  ['Đặng', 'dang'],
  ['Ħal', 'hal'],
  ['Işık', 'isik'],
  ['Groß', 'gross'],
  ['Ægir', 'aegir'],
  ['Œuvre', 'oeuvre'],
  ['Þór', 'thor'],
  ['Guðrún', 'gudrun'],
  ['Ǿre', 'ore'],
  ['Σωκράτης', 'Σωκρατησ'],
  ['Алёна', 'Алена'],
  ['שָׁלוֹם', 'שלום'],
  ['أَحْمَد', 'أحمد'],
];

/** A user is found by the beginnings of the words of its texts, and a username by the beginnings of its words. */
export function wordsContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`words contract: ${name}`, () => {
    const { store, fixture } = openForTests(open);
    /** Begins a word that no other test uses. */
    let count = 0;
    const unique = () => {
      count += 1;
      return `w${mintId().slice(-12)}${count}`;
    };

    async function createUser(
      members: Readonly<Record<string, unknown>>,
      realm = fixture.realm,
    ): Promise<Uuid> {
      const id = mintId();
      await commitWrites(store, insert(user, [realm, id], { ...userMembers, ...members }));
      return id;
    }

    async function search(
      resource: Resource,
      text: string | undefined,
      more: Partial<RealmSearch> = {},
    ): Promise<RealmSearchPage> {
      const { filterables = {} } = resource.searchAllRealms ?? {};
      const filter = text === undefined ? [] : parseFilter(`match(text,"${text}")`, filterables);
      return store.searchRealms(resource, { filter, only: undefined, after: undefined, limit: 50, ...more });
    }
    const found = async (text: string, resource: Resource = user) =>
      (await search(resource, text)).items.map(({ record }) => record.id);

    test('match finds a user by the beginning of each word of each text', async () => {
      const [first, middle, last, box, host, call] = Array.from({ length: 6 }, unique) as [
        string,
        ...string[],
      ];
      const id = await createUser({
        name: `Dr. ${call}`,
        email: `${box}.x@${host}.example`,
        given_name: `An ${first}`,
        middle_name: `${middle}`,
        family_name: `O'${last}-Smith`,
      });
      for (const word of [first, middle, last, box, host, call]) {
        expect([word, await found(word as string)]).toEqual([word as string, [id]]);
        expect(await found((word as string).slice(0, -1).toUpperCase())).toEqual([id]);
        expect(await found((word as string).slice(1))).toEqual([]);
      }
      expect(await found(`${last} ${first}`)).toEqual([id]);
      expect(await found(`${box}.x@${host}.example`)).toEqual([id]);
      expect(await found(`${last} ${unique()}`)).toEqual([]);
      expect(await found(`smi ${last}`)).toEqual([id]);
    });

    test('match finds namesakes in the order of their realms, and a person in two realms twice', async () => {
      const word = unique();
      const other = await createRealmFixture(store);
      const realms = [fixture.realm, other.realm].sort();
      for (const realm of [...realms, fixture.realm]) await createUser({ family_name: word }, realm);
      const { items } = await search(user, word);
      const keys = items.map(({ key }) => key.join('/'));
      expect(keys).toEqual(keys.toSorted());
      expect(items.map(({ key: [realm] }) => realm)).toEqual(
        [fixture.realm, fixture.realm, other.realm].sort(),
      );
      const [one, two] = [items[0], items[1]].map((item) => item?.key as Key) as [Key, Key];
      expect((await search(user, word, { limit: 2 })).items).toEqual(items.slice(0, 2));
      const after = one[0];
      expect((await search(user, word, { after, afterId: one.at(-1) as Uuid })).items).toEqual(
        items.slice(1),
      );
      expect((await search(user, word, { after: two[0], afterId: two.at(-1) as Uuid })).items).toEqual(
        items.slice(2),
      );
      expect((await search(user, word, { after: other.realm })).items.length).toBe(
        realms[1] === other.realm ? 0 : 2,
      );
      expect((await search(user, word, { only: [other.realm] })).items.length).toBe(1);
      expect((await search(user, word, { only: [mintId()] })).items).toEqual([]);
      expect((await search(user, word, { isCounted: true, limit: 1 })).total).toBe(3);
      expect((await search(user, word, { isCounted: true, only: [other.realm] })).total).toBe(1);
    });

    test('match follows a patch, a replacement, and a removal', async () => {
      const [before, after, replaced] = [unique(), unique(), unique()];
      const id = await createUser({ family_name: before, given_name: before });
      const key: Key = [fixture.realm, id];
      const patch = {
        members: { family_name: after },
        revision: systemClock.mintRevision(),
        at: systemClock.now(),
      };
      await commitWrites(store, { op: 'patch', resource: user, key, patch });
      expect([await found(before), await found(after)]).toEqual([[id], [id]]);
      await commitWrites(store, {
        op: 'patch',
        resource: user,
        key,
        patch: { ...patch, members: { given_name: null } },
      });
      expect([await found(before), await found(after)]).toEqual([[], [id]]);
      const { change: _, ...written } = insert(user, key, { ...userMembers, family_name: replaced });
      await commitWrites(store, { ...written, op: 'replace', change: changeFor(written, 'updated') });
      expect([await found(after), await found(replaced)]).toEqual([[], [id]]);
      await removeRecord(store, removalOf(user, key));
      expect(await found(replaced)).toEqual([]);
    });

    test('match finds no link of a removed user', async () => {
      const word = unique();
      const id = await createUser({ family_name: word });
      const parents = { ...fixture, user: id };
      for (let number = 0; number < 3; number += 1)
        await commitWrites(store, usernameLink(parents, `${word}-${number}@example.com`));
      expect((await found(word, passwordProfileInfo)).length).toBe(3);
      await removeRecord(store, removalOf(user, [fixture.realm, id]));
      expect([await found(word), await found(word, passwordProfileInfo)]).toEqual([[], []]);
    });

    test('match finds a username by the beginnings of its words', async () => {
      const word = unique();
      const link = usernameLink(fixture, `Jane_${word}@mail.example`);
      await commitWrites(store, link);
      for (const text of [word.slice(0, -1), `jane ${word}`, `mail ${word}`, `jane_${word}@mail.example`]) {
        expect([text, await found(text, passwordProfileInfo)]).toEqual([text, [link.record.id]]);
      }
      expect(await found(word)).toEqual([]);
    });

    test.each(ACCENTS)('match finds %s by %s, and the other way round', async (written, typed) => {
      const word = unique();
      const ids = [
        await createUser({ name: `${written} ${word}` }),
        await createUser({ name: `${typed} ${word}` }),
      ];
      const link = usernameLink(fixture, `${written}.${word}@example.com`);
      await commitWrites(store, link);
      for (const text of [written, typed, typed.toUpperCase(), typed.slice(0, -1)]) {
        expect([text, await found(`${text} ${word}`)]).toEqual([text, ids.toSorted()]);
        expect(await found(`${text} ${word}`, passwordProfileInfo)).toEqual([link.record.id]);
      }
    });

    test('match finds a user by the words of the texts that a patch leaves', async () => {
      const [given, before, after] = [unique(), unique(), unique()];
      const id = await createUser({ name: 'Zoë', given_name: given, family_name: before });
      const patch = (members: Record<string, unknown>) =>
        commitWrites(store, {
          op: 'patch',
          resource: user,
          key: [fixture.realm, id],
          patch: { members, revision: systemClock.mintRevision(), at: systemClock.now() },
        });
      await patch({ family_name: after, email: 'zoe@example.com' });
      expect(await found(`zoe ${given} ${after}`)).toEqual([id]);
      expect(await found(before)).toEqual([]);
      await patch({});
      expect(await found(`zoe ${given} ${after}`)).toEqual([id]);
    });

    test.each(Object.entries(SCRIPTS))(
      'match finds a name of 255 characters in the %s script',
      async (_, text) => {
        const word = unique();
        const name = [...`${word} ${text.repeat(255)}`].slice(0, 255).join('');
        const id = await createUser({
          name,
          family_name: [...text.replaceAll(' ', '').repeat(255)].slice(0, 255).join(''),
        });
        const words = wordsOf(foldedKey(name)).slice(0, 4);
        expect(words.length).toBeGreaterThan(1);
        for (const each of words) expect(await found(`${each} ${word}`)).toEqual([id]);
      },
    );

    test('match compares no more than the beginning of a very long word', async () => {
      const word = unique();
      const id = await createUser({ family_name: `${word}${'ﷺ'.repeat(200)}` });
      const cut = `${word}${foldedKey('ﷺ'.repeat(20)).replaceAll(' ', '')}`;
      expect(await found(`${word}${foldedKey('ﷺ').split(' ')[0]}`)).toEqual([id]);
      const long = unique().padEnd(WORD_CHARACTERS_MAX, 'x');
      const other = await createUser({ family_name: `${long}${'y'.repeat(100)}` });
      expect(await found(`${long}yyyy`)).toEqual([other]);
      expect(cut.length).toBeGreaterThan(WORD_CHARACTERS_MAX);
    });

    test('every separator ends a word', async () => {
      const word = unique();
      const parts = [...WORD_SEPARATORS].map((separator, at) => `q${at}${separator}`);
      const id = await createUser({ family_name: `${parts.join('')}${word}` });
      for (const at of parts.keys()) expect([at, await found(`q${at} ${word}`)]).toEqual([at, [id]]);
    });

    test('a list of a realm takes match with other filters, and counts its records', async () => {
      const word = unique();
      const home = await createRealmFixture(store);
      const ids = [];
      for (let number = 0; number < 4; number += 1)
        ids.push(
          await createUser({ family_name: word, given_name: number % 2 ? 'Odd' : 'Even' }, home.realm),
        );
      await createUser({ family_name: word });
      const filterables = user.filterables ?? {};
      const list = (text: string, offset = 0) =>
        store.list(user, [home.realm], {
          filter: parseFilter(text, filterables),
          sort: { by: 'id', isDescending: false },
          page: { kind: 'offset', offset, limit: 2 },
        });
      const page = await list(`match(text,${word})`);
      expect([page?.total, page?.hasMore, page?.items.map(({ record }) => record.id)]).toEqual([
        4,
        true,
        ids.toSorted().slice(0, 2),
      ]);
      expect((await list(`match(text,${word})`, 3))?.items.length).toBe(1);
      expect((await list(`match(text,${word}):eq(given_name,odd)`))?.total).toBe(2);
      expect((await list(`(match(text,${word} odd)|match(text,${word} even))`))?.total).toBe(4);
    });

    test('match of * lists every user in the order of realms, with their number', async () => {
      const homes = [await createRealmFixture(store), await createRealmFixture(store)];
      const only = homes.map(({ realm }) => realm).sort();
      for (const realm of only) await createUser({}, realm);
      const whole = await search(user, undefined, { only, isCounted: true });
      expect([whole.items.length, whole.total, whole.through]).toEqual([4, 4, undefined]);
      const keys = whole.items.map(({ key }) => key.join('/'));
      expect(keys).toEqual(keys.toSorted());
      const [, second] = whole.items;
      const rest = await search(user, undefined, {
        only,
        after: second?.key[0],
        afterId: second?.key.at(-1) as Uuid,
      });
      expect(rest.items).toEqual(whole.items.slice(2));
      expect((await search(user, undefined, { isCounted: true, limit: 1 })).total).toBeGreaterThanOrEqual(6);
    });
  });
}
