import type { DirectoryClient } from '../client/client.ts';

/** The data of the demo: two realms, and users whose names exercise scripts, punctuation and length. */

const ISSUERS = { google: 'https://accounts.google.com', azure: 'https://login.example.com' };

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

type DemoRealm = Awaited<ReturnType<typeof createRealm>>;

/** Creates the records, and changes some. Returns the URLs of a link and a username of Jane. */
export async function createDemoRecords(directory: DirectoryClient) {
  const home = await createRealm(directory, 'Buyer Organization');
  const other = await createRealm(directory, 'Wholesale — Großhandel');
  const people: Awaited<ReturnType<typeof createUser>>[] = [];
  for (const [place, person] of PEOPLE.entries()) {
    const subject = String(1_000_000_007 * (place + 91));
    people.push(await createUser(directory, place % 8 === 7 ? other : home, person, { place, subject }));
  }
  const subject = '110248495921238986420';
  const jane = await createUser(directory, home, ['Jane', 'Doe', 'jane'], { place: 0, subject });
  const [first = jane, second = jane] = people;
  const { users } = directory;
  await users.update(first.key, { name: 'Amélie Dubois' });
  await users.update(first.key, { email: 'amelie@example.com' });
  await users.update(second.key, { middle_name: 'Jan' });
  await users.delete((people.at(-1) ?? jane).key);
  const { oidcProfileInfos, passwordProfileInfos } = jane.included;
  return [oidcProfileInfos[0], passwordProfileInfos[0]].map((link) => link?.links.self ?? '');
}

async function createRealm({ realms, oidcProfiles, passwordProfiles }: DirectoryClient, name: string) {
  const { key } = await realms.create([], { name });
  const profileOf = (provider: string, issuer: string) =>
    oidcProfiles.create(key, {
      name: provider,
      client_id: 'shop',
      client_secret: 'secret of the shop',
      discovery_url: `${issuer}/.well-known/openid-configuration`,
    });
  const google = await profileOf('Google', ISSUERS.google);
  const azure = await profileOf('Company', ISSUERS.azure);
  const passwords = await passwordProfiles.create(key, { name: 'Passwords', username_format: 'email' });
  await passwordProfiles.create(key, { name: 'Kiosk', username_format: 'any' });
  return { key, google: google.id, azure: azure.id, passwords: passwords.id };
}

/** Creates a user: every second one has a link to Google, every third one to the company, every fifth one a username. */
function createUser(
  { users }: DirectoryClient,
  { key, google, azure, passwords }: DemoRealm,
  [given, family, mailbox]: (typeof PEOPLE)[number],
  { place, subject }: { readonly place: number; readonly subject: string },
) {
  const email = `${mailbox}@example.com`;
  const password = 'correct horse battery staple';
  const oidcLinks = [
    { subject, issuer: ISSUERS.google, oidc_profile_id: google },
    { subject: mailbox, issuer: ISSUERS.azure, oidc_profile_id: azure },
  ];
  return users.createIncluding(
    key,
    { name: `${given} ${family}`, email, given_name: given, family_name: family },
    {
      oidcProfileInfos: oidcLinks.filter((_, at) => place % (at + 2) === 0),
      passwordProfileInfos:
        place % 5 === 0 ? [{ username: email, password, password_profile_id: passwords }] : [],
    },
  );
}
