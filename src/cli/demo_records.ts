import { commitWrites } from '../directory/directory.ts';
import { draftDescribed } from '../directory/plan.ts';
import type { Write } from '../directory/store.ts';
import type { Clock, Uuid } from '../domain/id.ts';
import type { Key, Resource } from '../domain/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../domain/resources.ts';
import { systemClock } from '../platform/clock.ts';
import type { OpenDatabase } from '../service/open_database.ts';

/** The data of the demo: two realms, and users whose names exercise scripts, punctuation and length. */

const DAY_MS = 86_400_000;
/** Age of the oldest record. */
const OLDEST_DAYS = 40;

const ISSUERS = { google: 'https://accounts.google.com', azure: 'https://login.example.com/' };

/** Given name, family name, and the local part of the e-mail address. */
const PEOPLE: readonly (readonly [given: string, family: string, mailbox: string])[] = [
  ['Amélie', 'Dubois-Lefèvre', 'amelie.dubois'],
  ['Łukasz', 'Żółtowski', 'lukasz'],
  ['محمد', 'الفاسي', 'm.elfassi'],
  ['נועה', 'בן־דוד', 'noa.bendavid'],
  ['美咲', '佐藤', 'misaki.sato'],
  ['伟', '王', 'wei.wang'],
  ['지훈', '김', 'jihoon.kim'],
  ['Анна', 'Кузнецова', 'anna.k'],
  ['Ελένη', 'Παπαδοπούλου', 'eleni'],
  ['प्रिया', 'शर्मा', 'priya.sharma'],
  ['Nguyễn', 'Thị Hồng Nhung', 'nhung'],
  ['José María', 'de la Cruz y Ortega', 'jm.delacruz'],
  ['Zoë', 'O’Brien-Ngũgĩ', 'zoe'],
  ['Björk', 'Guðmundsdóttir', 'bjork'],
  ['İpek', 'Yıldız', 'ipek'],
  ['فاطمه', 'رضایی', 'f.rezaei'],
  ['สมชาย', 'ใจดี', 'somchai'],
  ['Ngozi', 'Adébáyọ̀', 'ngozi'],
  ['Siobhán', 'Ní Dhomhnaill', 'siobhan'],
  ['Sunny ☀️', 'Day 🏖️', 'sunny'],
  ['👩🏽‍💻 Ada', 'Coder', 'ada'],
  ['X Æ', 'A-12', 'xaea12'],
  ['Null', 'Void', 'null'],
  ['Robert', "'); drop table students;--", 'bobby'],
  ['<b>Bold</b>', '& Sons', 'bold'],
  ['Рaypal', 'Suppоrt', 'not-paypal'],
  ['Otto', 'von und zu Hohenlohe-Waldenburg-Schillingsfürst', 'otto'],
  ['Li', 'Ø', 'li'],
  ['Mia', 'Schäfer', 'mia.schaefer'],
  ['Tomás', 'Silva', 'tomas.silva'],
  ['Aroha', 'Ngata', 'aroha'],
  ['Kwame', 'Boateng', 'kwame'],
];

type DemoRealm = ReturnType<typeof newRealmIds>;

export type DemoRecords = Awaited<ReturnType<typeof createDemoRecords>>;

const { mintId: mint } = systemClock;

/**
 * Creates two realms: the first has Jane, a user with two OIDC links and a username, and most of the other users. Returns the IDs of
 * that realm, of her and of two of her links, which the demo looks up, and of the other users there, oldest first.
 */
export async function createDemoRecords({ engine }: Pick<OpenDatabase, 'engine'>) {
  const first = OLDEST_DAYS * DAY_MS;
  const home = newRealmIds();
  const other = newRealmIds();
  const drafts = [
    ...realmDrafts(home, { name: 'Buyer Organization', ago: first }),
    ...realmDrafts(other, { name: 'Wholesale — Großhandel', ago: first }),
  ];
  const people: Uuid[] = [];
  for (const [place, person] of PEOPLE.entries()) {
    const ago = Math.floor(first * (1 - (place + 1) / (PEOPLE.length + 1)));
    const id = mint();
    drafts.push(...userDrafts(place % 8 === 7 ? other : home, id, { person, place, ago }));
    if (place % 8 !== 7) people.push(id);
  }
  const jane = { user: mint(), oidcLink: mint(), passwordLink: mint() };
  await commitWrites(engine.records, [...drafts, ...janeDrafts(home, jane)]);
  return { ...home, ...jane, people };
}

function newRealmIds() {
  return { realm: mint(), google: mint(), azure: mint(), passwords: mint() };
}

/** A record that was created `ago` milliseconds before now. */
function draft(resource: Resource, key: Key, members: Record<string, unknown>, ago: number): Write {
  const clock: Clock = { ...systemClock, now: () => systemClock.now() - ago };
  return draftDescribed(resource, key, members, { clock, actor: 'demo' });
}

function realmDrafts(
  { realm: id, google, azure, passwords }: DemoRealm,
  { name, ago }: { readonly name: string; readonly ago: number },
): readonly Write[] {
  const profile = (issuer: string) => ({
    discovery_url: `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
    client_id: 'shop',
    issuer,
  });
  return [
    draft(realm, [id], { name }, ago),
    draft(oidcProfile, [id, google], { name: 'Google', ...profile(ISSUERS.google) }, ago),
    draft(oidcProfile, [id, azure], { name: 'Company', ...profile(ISSUERS.azure) }, ago),
    draft(passwordProfile, [id, passwords], { name: 'Passwords', username_format: 'email' }, ago),
    draft(passwordProfile, [id, mint()], { name: 'Kiosk', username_format: 'any' }, ago),
  ];
}

interface DemoUser {
  readonly person: (typeof PEOPLE)[number];
  readonly place: number;
  readonly ago: number;
}

/** A user with zero to three links. */
function userDrafts(home: DemoRealm, id: Uuid, { person, place, ago }: DemoUser): readonly Write[] {
  const [given, family, mailbox] = person;
  const email = `${mailbox}@example.com`;
  const members = { name: `${given} ${family}`, email, given_name: given, family_name: family };
  const oidc = (profile: Uuid, issuer: string, subject: string) =>
    draft(oidcProfileInfo, [home.realm, id, mint()], { subject, issuer, oidc_profile_id: profile }, ago);
  return [
    draft(user, [home.realm, id], members, ago),
    ...(place % 2 === 0 ? [oidc(home.google, ISSUERS.google, String(1_000_000_007 * (place + 91)))] : []),
    ...(place % 3 === 0 ? [oidc(home.azure, ISSUERS.azure, mailbox)] : []),
    ...(place % 5 < 3
      ? [
          draft(
            passwordProfileInfo,
            [home.realm, id, mint()],
            { username: email, password_profile_id: home.passwords },
            ago,
          ),
        ]
      : []),
  ];
}

function janeDrafts(
  { realm: id, google, azure, passwords }: DemoRealm,
  jane: Pick<DemoRecords, 'user' | 'oidcLink' | 'passwordLink'>,
): readonly Write[] {
  const name = { name: 'Jane Doe', email: 'jane@example.com', given_name: 'Jane', family_name: 'Doe' };
  const link = (profile: Uuid, issuer: string, subject: string) => ({
    subject,
    issuer,
    oidc_profile_id: profile,
  });
  return [
    draft(user, [id, jane.user], name, 0),
    draft(
      oidcProfileInfo,
      [id, jane.user, jane.oidcLink],
      link(google, ISSUERS.google, '110248495921238986420'),
      0,
    ),
    draft(oidcProfileInfo, [id, jane.user, mint()], link(azure, ISSUERS.azure, 'jane.doe'), 0),
    draft(
      passwordProfileInfo,
      [id, jane.user, jane.passwordLink],
      { username: 'jane@example.com', password_profile_id: passwords },
      0,
    ),
  ];
}
