import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { checkpointLine, erasureLine, readLine, restoreLine } from '../../src/audit/checkpoint.ts';
import { type LogKeys, openLogKeys } from '../../src/audit/log_keys.ts';
import { readErasures } from '../../src/cli/restore.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { EXIT } from '../../src/platform/exit.ts';
import { contentOf, copied, logKeysOf, program, recordsIn, rehearsed, runOn } from '../support/archive.ts';
import { freePort, freshFolder, type Planted } from '../support/service.ts';

setDefaultTimeout(300_000);

/** What a restore believes of the file that tells who was erased. */

const ID = '11111111-1111-4111-8111-111111111111' as Uuid;
const instant = (text: string) => Date.parse(text);

function keysOf(seed: string): LogKeys {
  return openLogKeys(Buffer.alloc(32, seed), { randomBytes: (count) => randomBytes(count) });
}

const OWN = keysOf('own');
const STRANGER = keysOf('stranger');

/** A line about one user. */
const line = (at = '2026-11-21T19:00:00.000Z', keys = OWN): string =>
  erasureLine({ realm: ID, user: ID, at: instant(at) }, keys);

/** Signed as any line is, whatever it says. */
function signed(said: object, keys = OWN): string {
  return JSON.stringify({ ...said, signature: keys.sign(JSON.stringify(said)) });
}

const ERASURE = { kind: 'erasure', realm_id: ID, user_id: ID, at: '2026-11-21T19:00:00.000Z' };

const CHECKPOINT = { kind: 'checkpoint', at: ERASURE.at, retention_days: 90, logs: [] };

async function* chunks(text: string): AsyncGenerator<Uint8Array> {
  // In pieces, so that lines cross them.
  for (let from = 0; from < text.length; from += 50) yield Buffer.from(text.slice(from, from + 50));
}

const read = (lines: readonly string[], how: { keys?: LogKeys | undefined; takesUnsigned?: boolean } = {}) =>
  readErasures(chunks(lines.join('\n')), { name: 'ledger.jsonl', keys: OWN, takesUnsigned: false, ...how });

describe('a ledger', () => {
  test('tells each user once, as of the last time, whatever else it holds', async () => {
    const { erasures, unsigned } = await read([
      checkpointLine([], { at: 1, retentionDays: 90 }, OWN),
      line('2026-11-21T19:00:00.000Z'),
      '',
      signed({ ...ERASURE, at: '2026-11-22T19:00:00Z', realm_id: ID.toUpperCase() }),
      signed({ ...ERASURE, at: '2026-11-20T19:00:00.123456Z' }),
      restoreLine({ at: 1, takenAt: undefined }, OWN),
      signed({ kind: 'something to come', realm_id: 7 }),
    ]);
    expect(erasures).toEqual([{ realm: ID, user: ID, at: instant('2026-11-22T19:00:00Z') }]);
    expect(unsigned).toEqual([]);
    expect(await read([''])).toEqual({ erasures: [], unsigned: [] });
  });

  test.each([
    ['cut by a crash', line().slice(0, -20)],
    ['no JSON', 'erasure'],
    ['no object', '["erasure"]'],
    ['null', 'null'],
    ['without a kind', '{}'],
    ['without a user', signed({ ...ERASURE, user_id: undefined })],
    ['of a user that is no identifier', signed({ ...ERASURE, user_id: 'jane' })],
    ['without an instant', signed({ ...ERASURE, at: undefined })],
    ['with an instant of no zone', signed({ ...ERASURE, at: '2026-11-21T19:00:00' })],
    ['with an instant that never was', signed({ ...ERASURE, at: '2026-13-41T19:00:00Z' })],
    ['of checkpoints that are none', signed({ ...CHECKPOINT, logs: [{ log: ID }] })],
    ['of checkpoints at no time', signed({ ...CHECKPOINT, at: undefined })],
    ['of checkpoints under no retention', signed({ ...CHECKPOINT, retention_days: undefined })],
    ['of a restore at no time', signed({ kind: 'restore' })],
    ['of a backup of no time', signed({ kind: 'restore', at: ERASURE.at, taken_at: 'lately' })],
    ['that is too long', signed({ ...ERASURE, note: 'x'.repeat(LIMITS.importLineBytesMax) })],
  ])('with a line %s is refused, by its number, and no option takes it', async (_name, broken) => {
    for (const takesUnsigned of [false, true]) {
      const reading = read([checkpointLine([], { at: 1, retentionDays: 90 }, OWN), broken, line()], {
        takesUnsigned,
      });
      await expect(reading).rejects.toThrow(/^line 2 of the ledger ledger\.jsonl is malformed/);
    }
  });

  const other = '22222222-2222-4222-8222-222222222222';
  test.each([
    ['whose user was changed', line().replace(`"user_id":"${ID}"`, `"user_id":"${other}"`)],
    ['whose time was changed', line().replace('2026-11-21', '2025-11-21')],
    ['that says more than was signed', line().replace('{', '{"note":1,')],
    ['that was made to tell of something else', line().replace('"erasure"', '"something to come"')],
    ['of another installation', line(undefined, STRANGER)],
    ['of a checkpoint of another one', checkpointLine([], { at: 1, retentionDays: 90 }, STRANGER)],
    ['of a restore of another one', restoreLine({ at: 1, takenAt: undefined }, STRANGER)],
    ['without a signature', JSON.stringify(ERASURE)],
    [
      'with the signature of another line',
      `${JSON.stringify(ERASURE).slice(0, -1)},${line('2026-01-01T00:00:00.000Z').slice(line().indexOf('"signature"'))}`,
    ],
    ['with half a signature', line().replace(/.{40}"}$/, '"}')],
    ['with a signature that is no text', JSON.stringify({ ...ERASURE, signature: 7 })],
    ['with a signature of nothing', JSON.stringify({ ...ERASURE, signature: '' })],
  ])('with a line %s is refused, by its number, unless it is taken by name', async (_name, bad) => {
    await expect(read([line(), bad])).rejects.toThrow(
      /^line 2 of the ledger ledger\.jsonl is not signed by the installation of the backup/,
    );
    expect((await read([line(), bad], { takesUnsigned: true })).unsigned).toEqual([2]);
  });

  test('is not believed by a backup that holds no key', async () => {
    await expect(read([line()], { keys: undefined })).rejects.toThrow(
      /^line 1 of the ledger ledger\.jsonl cannot be verified: the backup is older than the audit log/,
    );
    const { erasures, unsigned } = await read([line()], { keys: undefined, takesUnsigned: true });
    expect([erasures.length, unsigned]).toEqual([1, [1]]);
  });
});

describe('restore', () => {
  test('changes nothing where a line is not signed; with --take-unsigned it obeys and names it', async () => {
    const whole = await rehearsed(3);
    const { database, backup } = copied(whole);
    const [first, second] = whole.before as [Planted, Planted];
    const before = contentOf(database);
    const keys = await logKeysOf(database);
    const at = program.clock.now();
    const ledger = join(freshFolder(), 'ledger.jsonl');
    const own = erasureLine({ realm: first.realm, user: first.user, at }, keys);
    const strange = erasureLine({ realm: second.realm, user: second.user, at }, STRANGER);
    writeFileSync(ledger, `${own}\n${strange}\n`);
    const words = ['restore', backup, '--replace', '--ledger', ledger];
    const refused = await runOn(database, ...words);
    expect([refused.code, refused.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(/^.*line 2 of the ledger .* is not signed by the installation/),
    ]);
    expect(contentOf(database)).toEqual(before);
    const taken = await runOn(database, ...words, '--take-unsigned', '--json');
    expect([taken.code, JSON.parse(taken.stdout)]).toMatchObject([
      EXIT.done,
      { erasures_applied: 2, users_erased: 2, unsigned_lines: [2] },
    ]);
    const told = await runOn(database, ...words, '--take-unsigned');
    expect(told.stdout).toContain(`${ledger} line 2 is not signed by this installation; it was applied`);
  });

  test('is refused where the ledger is torn or not there, and leaves everything as it is', async () => {
    const { database, backup } = copied(await rehearsed(1));
    const ledger = join(freshFolder(), 'ledger.jsonl');
    const before = contentOf(database);
    const missing = await runOn(database, 'restore', backup, '--replace', '--ledger', ledger);
    expect([missing.code, missing.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(/ledger .* does not exist/),
    ]);
    writeFileSync(ledger, '{"kind":"erasure"');
    const torn = await runOn(database, 'restore', backup, '--replace', '--ledger', ledger);
    expect([torn.code, torn.stderr]).toEqual([EXIT.failed, expect.stringMatching(/line 1 of the ledger/)]);
    expect(contentOf(database)).toEqual(before);
  });

  test('that cannot say so where checkpoints are is done, and tells the line to put there', async () => {
    const { database, backup } = copied(await rehearsed(1));
    const url = `http://127.0.0.1:${await freePort()}/`;
    const words = ['--replace', '--checkpoint-url', url, '--allow-loopback-webhooks'];
    const { code, stderr } = await runOn(database, 'restore', backup, ...words);
    expect([code, stderr]).toEqual([
      EXIT.done,
      expect.stringContaining('could not be recorded with the checkpoints (RECEIVER_UNREACHABLE)'),
    ]);
    const said = readLine(stderr.trim().split('\n').at(-1) ?? '', await logKeysOf(database));
    expect(said).toMatchObject({ kind: 'restore', isSigned: true });
  });

  test('of a backup that is older than the log takes a ledger by --take-unsigned alone', async () => {
    const release = join(import.meta.dir, '../fixtures/releases/0.1.0/authrealm.db');
    const database = join(freshFolder(), 'older.db');
    const ledger = join(freshFolder(), 'ledger.jsonl');
    copyFileSync(`${release}.key`, `${database}.key`);
    const exported = readFileSync(join(dirname(release), 'export.jsonl'), 'utf8')
      .trim()
      .split('\n');
    const records = exported.map((text) => JSON.parse(text) as Record<string, Uuid>);
    const { realm_id, id: user } = records.find(({ type }) => type === 'user_authentication_info') ?? {};
    writeFileSync(
      ledger,
      erasureLine({ realm: realm_id as Uuid, user: user as Uuid, at: program.clock.now() }, OWN),
    );
    const words = ['restore', release, '--no-manifest', '--ledger', ledger];
    const refused = await runOn(database, ...words);
    expect([refused.code, refused.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(/line 1 of the ledger .* cannot be verified: the backup is older/),
    ]);
    expect(existsSync(database)).toBe(false);
    const taken = await runOn(database, ...words, '--take-unsigned');
    expect([taken.code, taken.stderr]).toEqual([EXIT.done, '']);
    const there = recordsIn(database);
    expect([there.has(user as Uuid), there.has(realm_id as Uuid)]).toEqual([false, true]);
  });
});
