import { describe, expect, test } from 'bun:test';
import type { Uuid } from '../../../src/model/id.ts';
import { oidcProfileInfo, passwordProfileInfo, user } from '../../../src/model/resources.ts';
import { exportRecords } from '../../../src/ops/transfer/export.ts';
import { importCounts, type Json, mintId, realmLines, runImport } from '../../support/import_fixtures.ts';
import { startService } from '../../support/service.ts';

/** Whether an imported user may sign in: docs/guides/import-and-export.md#disabled-users. */

const { db } = await startService();
const { ids, lines, all } = realmLines();
await runImport(db, all);

const person = (more: Json): Json => ({ ...lines.user, id: mintId(), ...more });
const isEnabled = async ({ id }: Json) =>
  (await db.engine.records.get(user, [ids.realm, id as Uuid]))?.enabled;

const hoursFromNow = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
const [FLAG_ON, FLAG_OFF] = [[true], [false]];
const NO_FLAG = [null, 0, 1, '', 'true', 'yes', [true], {}];
const ACTIVE = ['active', 'ACTIVE', 'enabled', 'Enabled'];
const INACTIVE = ['inactive', 'INACTIVE', 'disabled', 'blocked', 'suspended', 'Suspended'];
const NO_STATE = [null, true, 1, '', ' active', 'activ', 'CA', 'pending', ['active'], { active: true }];

/** The members of other systems, with values of an enabled user, of a disabled one, and values that say neither. */
const STATES: readonly (readonly [string, readonly unknown[], readonly unknown[], readonly unknown[]])[] = [
  ['disabled', FLAG_OFF, FLAG_ON, NO_FLAG],
  ['blocked', FLAG_OFF, FLAG_ON, NO_FLAG],
  ['active', FLAG_ON, FLAG_OFF, NO_FLAG],
  ['is_active', FLAG_ON, FLAG_OFF, NO_FLAG],
  ['isActive', FLAG_ON, FLAG_OFF, NO_FLAG],
  ['Enabled', FLAG_ON, FLAG_OFF, NO_FLAG],
  ['state', ACTIVE, INACTIVE, NO_STATE],
  ['status', ACTIVE, INACTIVE, NO_STATE],
  [
    'UserStatus',
    ['CONFIRMED', 'EXTERNAL_PROVIDER', 'RESET_REQUIRED', 'FORCE_CHANGE_PASSWORD'],
    ['UNCONFIRMED', 'ARCHIVED', 'COMPROMISED'],
    [null, true, '', 'UNKNOWN', 'ACTIVE', ['CONFIRMED']],
  ],
  [
    'banned_until',
    [null, hoursFromNow(-1), '2021-02-03T04:05:06+01:00'],
    [hoursFromNow(1), '9999-12-31T23:59:59.999999Z'],
    [true, 0, 4_102_444_800, '', 'none', '2099-01-01', '2099-02-30T00:00:00Z', '2099-01-01 00:00:00+00'],
  ],
];

describe('a line of a user with a member of another system', () => {
  test.each(STATES)('%s is read as enabled, and refused where its value says neither', async (...row) => {
    const [member, enabled, disabled, neither] = row;
    for (const [values, expected] of [
      [enabled, true],
      [disabled, false],
    ] as const) {
      const people = values.map((value) => person({ [member]: value }));
      const report = await runImport(db, people, { isStrict: true });
      expect([report.refusals, [...report.mapped], [...report.ignored]]).toEqual([
        [],
        [[member, people.length]],
        [],
      ]);
      for (const each of people)
        expect([each[member], await isEnabled(each)]).toEqual([each[member], expected]);
    }
    const people = neither.map((value) => person({ [member]: value }));
    const { counts, refusals, mapped } = await runImport(db, people);
    expect([counts, [...mapped]]).toEqual([importCounts(0, 0, 0, people.length), []]);
    for (const [at, refusal] of refusals.entries())
      expect(refusal).toBe(
        `line ${at + 1}: ${member} has an unknown value: replace the member by enabled, true or false`,
      );
  });

  test('a user is disabled if any of several members says so, also next to enabled', async () => {
    const disabled = [
      { active: true, blocked: true },
      { disabled: false, UserStatus: 'CONFIRMED', Enabled: false },
      { enabled: true, state: 'inactive' },
      { enabled: false, state: 'active' },
      { enabled: false },
    ].map(person);
    const enabled = [{ active: true, blocked: false }, { enabled: true, status: 'active' }, {}].map(person);
    expect((await runImport(db, [...disabled, ...enabled])).refusals).toEqual([]);
    for (const each of disabled) expect([each, await isEnabled(each)]).toEqual([each, false]);
    for (const each of enabled) expect([each, await isEnabled(each)]).toEqual([each, true]);
    const report = await runImport(db, [person({ active: true, status: 'premium' })]);
    expect(report.refusals).toEqual([expect.stringContaining('line 1: status has an unknown value')]);
  });

  test.each([null, 'true', 0, {}])('%j as enabled is refused, also with another member', async (enabled) => {
    const { refusals } = await runImport(db, [person({ enabled }), person({ enabled, active: true })]);
    expect(refusals).toHaveLength(2);
    for (const refusal of refusals) expect(refusal).toMatch(/^line \d: enabled must be /);
  });

  test('lines of other records have such members ignored', async () => {
    const { lines: others } = realmLines();
    const source = [
      { ...others.realm, status: 'premium' },
      { ...others.user, active: true },
      { ...others.passwords, blocked: 1 },
      { ...others.name, disabled: true },
    ];
    const { refusals, ignored, mapped } = await runImport(db, source);
    expect([refusals, Object.fromEntries(ignored), Object.fromEntries(mapped)]).toEqual([
      [],
      { status: 1, blocked: 1, disabled: 1 },
      { active: 1 },
    ]);
  });
});

describe('an import of disabled users', () => {
  const linksOf = async ({ ids: of }: ReturnType<typeof realmLines>) => {
    const { records, credentials } = db.engine;
    return {
      link: await records.get(oidcProfileInfo, [of.realm, of.user, of.link]),
      name: await records.get(passwordProfileInfo, [of.realm, of.user, of.name]),
      credential: await credentials.get(of.realm, of.user, of.name),
    };
  };
  const upsert = (...source: Json[]) => runImport(db, source, { isUpsert: true });

  test('an upsert that disables a user ends the sign-ins of each link, and one that enables the user does not', async () => {
    const own = realmLines();
    await runImport(db, own.all);
    const before = await linksOf(own);
    const { length } = await db.engine.records.changes(own.ids.realm, 0, 1_000);
    const disabled = { ...own.lines.user, meta: undefined, status: 'suspended' };
    expect((await upsert(disabled)).counts).toEqual(importCounts(0, 0, 1, 0));
    const changes = (await db.engine.records.changes(own.ids.realm, 0, 1_000)).slice(length);
    const expected = [
      [own.ids.user, ['enabled']],
      [own.ids.link, ['updated_at']],
      [own.ids.name, ['updated_at']],
    ];
    expect(changes.map(({ id, members }) => [id, members]).sort()).toEqual(expected.sort() as never);
    expect(new Set(changes.map(({ actor }) => actor))).toEqual(new Set(['import']));
    const after = await linksOf(own);
    expect(after.credential).toBeUndefined();
    for (const each of ['link', 'name'] as const)
      expect(after[each]?.revision).not.toBe(before[each]?.revision as never);
    expect((await upsert(disabled)).counts).toEqual(importCounts(0, 1, 0, 0));

    // A line that does not say it leaves it.
    const renamed = { ...own.lines.user, meta: undefined, name: 'Jane Roe' };
    expect((await upsert(renamed)).counts).toEqual(importCounts(0, 0, 1, 0));
    expect(await linksOf(own)).toEqual(after);
    expect((await upsert({ ...renamed, enabled: true })).counts).toEqual(importCounts(0, 0, 1, 0));
    const enabled = await linksOf(own);
    expect<unknown>({ ...enabled, credential: undefined }).toEqual(after);
    expect(enabled.credential?.version).not.toBe(before.credential?.version as string);
  });

  test('a line that differs in enabled alone is refused without --upsert', async () => {
    const { lines: own } = realmLines();
    await runImport(db, [own.realm, own.user]);
    expect((await runImport(db, [{ ...own.user, blocked: true }])).refusals).toEqual([
      'line 1: differs from the stored record in enabled',
    ]);
  });

  test('an export states enabled of each user, and its import changes nothing', async () => {
    const { ids: own, lines: of } = realmLines();
    const other = { ...of.user, id: mintId() };
    await runImport(db, [of.realm, { ...of.user, disabled: true }, other]);
    const written: string[] = [];
    const snapshot = await db.engine.records.openSnapshot();
    await exportRecords({
      ...{ snapshot, within: own.realm, open: undefined, signal: new AbortController().signal },
      write: async (text) => void written.push(text),
      onProgress: () => undefined,
    });
    await snapshot.close();
    const exported = written.join('').trim().split('\n');
    const stated = exported.map((line) => JSON.parse(line) as Json).filter(({ type }) => type === user.type);
    expect(stated.map(({ id, enabled }) => [id, enabled]).sort()).toEqual(
      [
        [own.user, false],
        [other.id, true],
      ].sort(),
    );
    expect((await runImport(db, exported)).counts).toEqual(importCounts(0, 3, 0, 0));
  });
});
