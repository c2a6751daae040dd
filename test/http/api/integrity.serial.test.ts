import { describe, expect, test } from 'bun:test';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { UNUSUAL_EMAILS } from '../../support/emails.ts';
import {
  createParents,
  createRecord,
  type Data,
  FULL_SCOPE,
  KINDS,
  type Kind,
  OFFLINE,
  type ParentIds,
  type RecordBody,
  rowCounts,
  uniqueWord,
  userPath,
} from '../../support/resource_cases.ts';
import { comparableResponse, errorsOf, ISSUER, startService } from '../../support/service.ts';

/** Constraints between records, which the database enforces (docs/wire.md#uniqueness). */

const service = await startService(OFFLINE);
const token = await service.token(FULL_SCOPE);
const home = await createParents(service, token);
const otherHome = await createParents(service, token);

const [realms, oidcProfiles, passwordProfiles, users, identities, usernames] = KINDS;

const mint = systemClock.mintId;

/** The status, pointers and details of a rejected POST, which must not write anything. */
async function rejectedPost(kind: Kind, where: ParentIds, data: Data) {
  const before = await rowCounts(service);
  const body = { data: { ...kind.fresh(where), ...data } };
  const answer = await service.post(kind.collection(where), token, body);
  expect(await rowCounts(service)).toEqual(before);
  return [answer.status, ...(await errorsOf(answer)).map(({ source, detail }) => [source?.pointer, detail])];
}

const UNIQUE = 'must be unique in the realm';
const OWN = ': the same user-authentication-info has it already';
/** The same errors where the other record is one of the same user. */
const ofSameUser = (refusal: (number | string[])[]) =>
  refusal.map((each) => (typeof each === 'number' ? each : [each[0], `${each[1]}${OWN}`]));
const TAKEN_IDENTITY = [
  422,
  ['/data/issuer', `data.issuer: ${UNIQUE}, together with subject`],
  ['/data/subject', `data.subject: ${UNIQUE}, together with issuer`],
];
const TAKEN_USERNAME = [
  422,
  ['/data/password_profile_id', `data.password_profile_id: ${UNIQUE}, together with username`],
  ['/data/username', `data.username: ${UNIQUE}, together with password_profile_id`],
];

async function another(kind: Kind, where: ParentIds): Promise<string> {
  return (await createRecord(service, token, { kind, home: where })).id;
}

describe('the uniqueness of identities', () => {
  test('a taken identity is 422 with its two fields, says whether the same user has it, and nothing else of the other record', async () => {
    const first = await createRecord(service, token, { kind: identities, home });
    const { subject } = first.body.data;
    const otherUser = {
      ...home,
      user: await another(users, home),
      oidcProfile: await another(oidcProfiles, home),
    };
    expect(await rejectedPost(identities, home, { subject })).toEqual(ofSameUser(TAKEN_IDENTITY));
    expect(await rejectedPost(identities, otherUser, { subject })).toEqual(TAKEN_IDENTITY);
    const other = await createRecord(service, token, { kind: identities, home });
    const put = { data: { type: identities.resource.type, subject } };
    const answer = await service.put(other.path, token, put);
    expect([answer.status, (await errorsOf(answer)).map(({ detail }) => detail?.endsWith(OWN))]).toEqual([
      422,
      [true, true],
    ]);
    expect(await answer.text()).not.toContain(first.id);
  });

  test('an identity is accepted in another realm, with another issuer, and after its record is deleted', async () => {
    const { path, body } = await createRecord(service, token, { kind: identities, home });
    const { subject } = body.data;
    await createRecord(service, token, { kind: identities, home: otherHome, data: { subject } });
    for (const issuer of [ISSUER.slice(0, -1), ISSUER.replace('login', 'LOGIN'), `${ISSUER}x`]) {
      await createRecord(service, token, { kind: identities, home, data: { subject, issuer } });
    }
    await service.del(path, token);
    await createRecord(service, token, { kind: identities, home, data: { subject } });
  });

  test('a PUT of the current values of an identity succeeds', async () => {
    const { path, body } = await createRecord(service, token, { kind: identities, home });
    expect((await service.put(path, token, { data: body.data })).status).toBe(200);
  });

  test('subjects that differ in any code point are different identities', async () => {
    const stem = uniqueWord('subject');
    const alike = [
      ...[
        stem,
        stem.toUpperCase(),
        ` ${stem}`,
        `${stem} `,
        `${stem}\u200b`,
        `${stem}\u00ad`,
        `${stem}\ufe0f`,
      ],
      ...[`${stem}é`, `${stem}e\u0301`, `${stem}É`, `${stem}ａ`, `${stem}a`, `${stem}А`, `${stem}A`],
      ...[`${stem}ß`, `${stem}ss`, `${stem}SS`, `${stem}ﬁ`, `${stem}fi`, `${stem}i`, `${stem}ı`, `${stem}İ`],
    ];
    for (const subject of alike)
      await createRecord(service, token, { kind: identities, home, data: { subject } });
    for (const subject of alike)
      expect(await rejectedPost(identities, home, { subject })).toEqual(ofSameUser(TAKEN_IDENTITY));
  });
});

describe('the uniqueness of usernames', () => {
  /** Spellings of one username, with their difference. */
  const SPELLINGS: [what: string, spell: (stem: string) => string][] = [
    ['nothing', (stem) => stem],
    ['case', (stem) => stem.toUpperCase()],
    ['composition', (stem) => stem.replace('é', 'e\u0301')],
    ['width', (stem) => stem.replace('a', 'ａ')],
    ['width and case', (stem) => stem.replace('a', 'Ａ')],
    ['a zero-width space', (stem) => `${stem}\u200b`],
    ['a soft hyphen', (stem) => stem.replace('-', '\u00ad-')],
    ['a variation selector', (stem) => `${stem}\ufe0f`],
    ['a word joiner before it', (stem) => `\u2060${stem}`],
    ['a ligature', (stem) => stem.replace('fi', 'ﬁ')],
    ['a sharp s', (stem) => stem.replace('ss', 'ß')],
    ['a capital sharp s', (stem) => stem.replace('ss', 'ẞ')],
    ['a dotless i', (stem) => stem.replace('i', 'ı')],
    ['spaces around it', (stem) => ` ${stem}  `],
    ['wide blanks around it', (stem) => `\u3000${stem}\u2800`],
    ['two spaces inside', (stem) => stem.replace(' ', '  ')],
    ['a no-break space', (stem) => stem.replace(' ', '\u00a0')],
  ];
  test('usernames that differ in case, composition, width, blanks or invisible characters are the same', async () => {
    const stem = uniqueWord('jané-fi ss-a');
    const { path } = await createRecord(service, token, { kind: usernames, home, data: { username: stem } });
    const other = await createRecord(service, token, { kind: usernames, home });
    const otherUser = { ...home, user: await another(users, home) };
    for (const [what, spell] of SPELLINGS) {
      const username = spell(stem);
      expect([what, await rejectedPost(usernames, otherUser, { username })]).toEqual([what, TAKEN_USERNAME]);
      expect(await rejectedPost(usernames, home, { username })).toEqual(ofSameUser(TAKEN_USERNAME));
      const put = { data: { type: usernames.resource.type, username } };
      expect([what, (await service.put(other.path, token, put)).status]).toEqual([what, 422]);
      // Its own record accepts another spelling.
      const answer = await service.put(path, token, put);
      expect([what, answer.status, ((await answer.json()) as RecordBody).data.username]).toEqual([
        what,
        200,
        username,
      ]);
    }
  });

  test('usernames with letters of other scripts, of other profiles and of other realms are different', async () => {
    const stem = uniqueWord('paypal');
    await createRecord(service, token, { kind: usernames, home, data: { username: stem } });
    const apart: [ParentIds, string][] = [
      [home, stem.replace('a', 'а')],
      [home, stem.replace('y', 'y ')],
      [{ ...home, passwordProfile: await another(passwordProfiles, home) }, stem],
      [otherHome, stem],
    ];
    for (const [where, username] of apart) {
      await createRecord(service, token, { kind: usernames, home: where, data: { username } });
    }
  });
});

describe('references and parents', () => {
  const NAMES = [
    [identities, 'oidc_profile_id', 'oidcProfile', 'passwordProfile'],
    [usernames, 'password_profile_id', 'passwordProfile', 'oidcProfile'],
  ] as const;
  test.each(NAMES)('a $name with an unknown profile is 422', async (kind, member, own, other) => {
    const rejection = [422, [`/data/${member}`, `data.${member}: must name a record of the realm`]];
    const gone = await createRecord(service, token, {
      kind: own === 'oidcProfile' ? oidcProfiles : passwordProfiles,
      home,
    });
    await service.del(gone.path, token);
    for (const id of [mint(), gone.id, otherHome[own], home[other], home.user, home.realm]) {
      expect(await rejectedPost(kind, home, { [member]: id })).toEqual(rejection);
    }
    // In upper case it is the same record, and answered in lower case.
    const data = { [member]: home[own].toUpperCase() };
    expect((await createRecord(service, token, { kind, home, data })).body.data[member]).toBe(home[own]);
  });

  test.each(NAMES)('a PUT of a $name does not change its profile', async (kind, member, own, other) => {
    const { path, body } = await createRecord(service, token, { kind, home });
    for (const value of [home[other], otherHome[own], mint(), null, 7, 'not an ID']) {
      const answer = await service.put(path, token, { data: { type: kind.resource.type, [member]: value } });
      expect([answer.status, ((await answer.json()) as RecordBody).data[member]]).toEqual([
        200,
        body.data[member],
      ]);
    }
  });

  test('a POST below an unknown realm or user is the same 404 as for an absent record', async () => {
    const absence = await comparableResponse(await service.get(`/v2/authentication-realms/${mint()}`, token));
    const places: [Kind, Partial<ParentIds>][] = [
      ...[oidcProfiles, passwordProfiles, users].map((kind): [Kind, Partial<ParentIds>] => [
        kind,
        { realm: mint() },
      ]),
      ...[identities, usernames].flatMap((kind): [Kind, Partial<ParentIds>][] => [
        [kind, { realm: mint() }],
        [kind, { realm: otherHome.realm }],
        [kind, { user: mint() }],
        [kind, { user: otherHome.user }],
        [kind, { user: home.realm }],
        [kind, { user: 'no-identifier' }],
        [kind, { realm: 'no-identifier' }],
      ]),
    ];
    const before = await rowCounts(service);
    for (const [kind, change] of places) {
      const data = kind.fresh(home);
      const answer = await service.post(kind.collection({ ...home, ...change }), token, { data });
      expect([kind.name, change, await comparableResponse(answer)]).toEqual([kind.name, change, absence]);
    }
    expect(await rowCounts(service)).toEqual(before);
  });
});

describe('body id (docs/wire.md#updates)', () => {
  const put = ({ resource }: Kind, path: string, id: unknown) =>
    service.put(path, token, { data: { type: resource.type, id } });

  test.each([...KINDS])('a PUT of a $name accepts the ID of the path in any letter case', async (kind) => {
    const { path, id } = await createRecord(service, token, { kind, home, data: { id: mint() } });
    for (const own of [id, id.toUpperCase()]) expect((await put(kind, path, own)).status).toBe(200);
    // The original service compares it with the ID of the user there.
    if (kind === identities) expect((await put(kind, path, home.user)).status).toBe(200);
  });

  test.each(KINDS.filter((kind) => kind !== users))(
    'a PUT of a $name with another ID is 422, with an ID that is not a string 400',
    async (kind) => {
      const { path, id } = await createRecord(service, token, { kind, home });
      for (const other of [null, 7, true, [id], { id }]) {
        expect([other, (await put(kind, path, other)).status]).toEqual([other, 400]);
      }
      const user = kind === identities ? mint() : home.user;
      for (const other of [mint(), '', 'no-identifier', otherHome.realm, user]) {
        const answer = await put(kind, path, other);
        const [error] = await errorsOf(answer);
        expect([other, answer.status, error?.source?.pointer, error?.detail]).toEqual([
          other,
          422,
          '/data/id',
          'data.id: must be the identifier in the path',
        ]);
      }
    },
  );

  test('a PUT of a user ignores the ID in the body', async () => {
    const { path, id } = await createRecord(service, token, { kind: users, home });
    for (const other of [mint(), '', 'no-identifier', null, 7, [id]]) {
      const answer = await put(users, path, other);
      expect([other, answer.status, ((await answer.json()) as RecordBody).data.id]).toEqual([other, 200, id]);
    }
  });
});

describe('username_format', () => {
  const format = (username_format: string) => ({
    data: { type: passwordProfiles.resource.type, username_format },
  });
  test('username_format email is enforced for usernames in later POST and PUT requests only', async () => {
    const profile = await createRecord(service, token, { kind: passwordProfiles, home });
    const where = { ...home, passwordProfile: profile.id };
    const early = await createRecord(service, token, { kind: usernames, home: where });
    expect((await service.put(profile.path, token, format('email'))).status).toBe(200);
    const rule = 'data.username: must be an e-mail address where username_format is email';
    expect(await rejectedPost(usernames, where, {})).toEqual([422, ['/data/username', rule]]);
    const rename = (username: string) =>
      service.put(early.path, token, { data: { type: usernames.resource.type, username } });
    expect((await rename(uniqueWord('jane'))).status).toBe(422);
    expect((await service.get(early.path, token)).status).toBe(200);
    // An absent member is not checked.
    const touch = { data: { type: usernames.resource.type } };
    expect((await service.put(early.path, token, touch)).status).toBe(200);
    for (const address of UNUSUAL_EMAILS)
      expect([address, (await rename(address)).status]).toEqual([address, 200]);
    expect((await service.put(profile.path, token, format('any'))).status).toBe(200);
    expect((await rename(uniqueWord('jane'))).status).toBe(200);
  });
});

test.each(UNUSUAL_EMAILS)('a user with the e-mail address %s is created and found', async (email) => {
  const { id, body } = await createRecord(service, token, { kind: users, home, data: { email } });
  expect(body.data.email).toBe(email);
  const filter = encodeURIComponent(`eq(email,"${email}")`);
  const found = await service.get(`${users.collection(home)}?filter=${filter}`, token);
  expect(((await found.json()) as { data: readonly { id: string }[] }).data.map((each) => each.id)).toEqual([
    id,
  ]);
});

test('two users can have the same e-mail address', async () => {
  const data = { email: 'same@example.com' };
  await createRecord(service, token, { kind: users, home, data });
  await createRecord(service, token, { kind: users, home, data });
});

describe('the revision of a user changes with the records below it', () => {
  test.each([identities, usernames])(
    'a write of a $name changes the ETag and updated_at of its user',
    async (kind) => {
      const where = { ...home, user: await another(users, home) };
      const { realm } = home;
      const readState = async () => {
        const answer = await service.get(userPath(where), token);
        const { meta } = ((await answer.json()) as RecordBody).data;
        return {
          etag: answer.headers.get('etag') ?? '',
          created: meta.created_at,
          updated: meta.updated_at ?? '',
        };
      };
      const states = [await readState()];
      const steps: ((path: string) => Promise<unknown>)[] = [
        async () => createRecord(service, token, { kind, home: where }),
        async (path) => service.put(path, token, { data: { type: kind.resource.type, ...kind.changes() } }),
        async (path) => service.del(path, token),
      ];
      let path = '';
      for (const step of steps) {
        service.clock.advance(5);
        const made = await step(path);
        if (path === '') ({ path } = made as { path: string });
        states.push(await readState());
      }
      expect(new Set(states.map(({ etag }) => etag)).size).toBe(4);
      expect(new Set(states.map(({ created }) => created)).size).toBe(1);
      const instants = states.map(({ updated }) => updated);
      expect(new Set(instants).size).toBe(4);
      expect(instants).toEqual([...instants].sort());
      // A rejected write below the user and a write of the realm do not change the user.
      await rejectedPost(kind, where, { [kind === identities ? 'subject' : 'username']: '' });
      await service.put(`/v2/authentication-realms/${realm}`, token, {
        data: { type: realms.resource.type },
      });
      expect(await readState()).toEqual(states[3] as never);
    },
  );
});
