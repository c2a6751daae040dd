import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readErasures } from '../../../src/cli/restore.ts';
import { checkpointLine, erasureLine, readLine, restoreLine } from '../../../src/log/checkpoint.ts';
import { type LogKeys, openLogKeys } from '../../../src/log/keys.ts';
import type { Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import { EXIT } from '../../../src/ops/process/exit.ts';
import {
  contentOf,
  copyBackupFixture,
  createBackupFixture,
  logKeysOf,
  program,
  runOnFile,
} from '../../support/backup_fixtures.ts';
import { type Fixture, freshFolder } from '../../support/service.ts';

setDefaultTimeout(300_000);

/** Which lines of an erasure ledger a restore accepts. */

const ID = '11111111-1111-4111-8111-111111111111' as Uuid;
const instant = (text: string) => Date.parse(text);

function keysOf(seed: string): LogKeys {
  return openLogKeys(Buffer.alloc(32, seed), { randomBytes: (count) => randomBytes(count) });
}

const OWN = keysOf('own');
const FOREIGN = keysOf('stranger');

/** A line about the erasure of one user. */
const line = (at = '2026-11-21T19:00:00.000Z', keys = OWN): string =>
  erasureLine({ realm: ID, user: ID, at: instant(at) }, keys);

/** A line with this content and a valid signature. */
function signed(content: object, keys = OWN): string {
  return JSON.stringify({ ...content, signature: keys.sign(JSON.stringify(content)) });
}

const ERASURE = { kind: 'erasure', realm_id: ID, user_id: ID, at: '2026-11-21T19:00:00.000Z' };

const CHECKPOINT = { kind: 'checkpoint', at: ERASURE.at, retention_days: 90, logs: [] };

async function* chunks(text: string): AsyncGenerator<Uint8Array> {
  // In pieces, so that lines cross them.
  for (let from = 0; from < text.length; from += 50) yield Buffer.from(text.slice(from, from + 50));
}

const read = (lines: readonly string[], { takesUnsigned = false } = {}) =>
  readErasures(chunks(lines.join('\n')), { name: 'ledger.jsonl', keys: OWN, takesUnsigned });

describe('an erasure ledger', () => {
  test('a ledger yields the erasures in it, and skips other lines', async () => {
    const { erasures, unsigned } = await read([
      checkpointLine([], { at: 1, retentionDays: 90 }, OWN),
      line('2026-11-21T19:00:00.000Z'),
      '',
      signed({ ...ERASURE, at: '2026-11-22T19:00:00Z', realm_id: ID.toUpperCase() }),
      signed({ ...ERASURE, at: '2026-11-20T19:00:00.123456Z' }),
      restoreLine({ at: 1, takenAt: undefined }, OWN),
      signed({ kind: 'future kind', realm_id: 7 }),
    ]);
    const times = ['2026-11-21T19:00:00.000Z', '2026-11-22T19:00:00Z', '2026-11-20T19:00:00.123Z'];
    expect(erasures).toEqual(times.map((at) => ({ realm: ID, user: ID, at: instant(at) })));
    expect(unsigned).toEqual([]);
    expect(await read([''])).toEqual({ erasures: [], unsigned: [] });
  });

  test.each([
    ['cut by a crash', line().slice(0, -20)],
    ['that is not JSON', 'erasure'],
    ['that is not an object', '["erasure"]'],
    ['that is null', 'null'],
    ['without a kind', '{}'],
    ['without a user', signed({ ...ERASURE, user_id: undefined })],
    ['with a user that is not a UUID', signed({ ...ERASURE, user_id: 'jane' })],
    ['without a time', signed({ ...ERASURE, at: undefined })],
    ['with a time without a zone', signed({ ...ERASURE, at: '2026-11-21T19:00:00' })],
    ['with an impossible time', signed({ ...ERASURE, at: '2026-13-41T19:00:00Z' })],
    ['of checkpoints without their values', signed({ ...CHECKPOINT, logs: [{ log: ID }] })],
    ['of checkpoints without a time', signed({ ...CHECKPOINT, at: undefined })],
    ['of checkpoints without a retention', signed({ ...CHECKPOINT, retention_days: undefined })],
    ['of a restore without a time', signed({ kind: 'restore' })],
    ['of a backup with an invalid time', signed({ kind: 'restore', at: ERASURE.at, taken_at: 'lately' })],
    ['that is too long', signed({ ...ERASURE, note: 'x'.repeat(LIMITS.importLineBytesMax) })],
  ])(
    'a ledger with a line %s is refused with the line number, whatever the options',
    async (_name, broken) => {
      for (const takesUnsigned of [false, true]) {
        const reading = read([checkpointLine([], { at: 1, retentionDays: 90 }, OWN), broken, line()], {
          takesUnsigned,
        });
        await expect(reading).rejects.toThrow(/^line 2 of the ledger ledger\.jsonl is malformed/);
      }
    },
  );

  const other = '22222222-2222-4222-8222-222222222222';
  test.each([
    ['whose user was changed', line().replace(`"user_id":"${ID}"`, `"user_id":"${other}"`)],
    ['whose time was changed', line().replace('2026-11-21', '2025-11-21')],
    ['with more members than were signed', line().replace('{', '{"note":1,')],
    ['whose kind was changed', line().replace('"erasure"', '"future kind"')],
    ['of another installation', line(undefined, FOREIGN)],
    ['of a checkpoint of another installation', checkpointLine([], { at: 1, retentionDays: 90 }, FOREIGN)],
    ['of a restore of another installation', restoreLine({ at: 1, takenAt: undefined }, FOREIGN)],
    ['without a signature', JSON.stringify(ERASURE)],
    [
      'with the signature of another line',
      `${JSON.stringify(ERASURE).slice(0, -1)},${line('2026-01-01T00:00:00.000Z').slice(line().indexOf('"signature"'))}`,
    ],
    ['with half a signature', line().replace(/.{40}"}$/, '"}')],
    ['with a signature that is not a string', JSON.stringify({ ...ERASURE, signature: 7 })],
    ['with an empty signature', JSON.stringify({ ...ERASURE, signature: '' })],
  ])(
    'a ledger with a line %s is refused with the line number, unless unsigned lines are taken',
    async (_name, bad) => {
      await expect(read([line(), bad])).rejects.toThrow(
        /^line 2 of the ledger ledger\.jsonl is not signed by the installation of the backup/,
      );
      expect((await read([line(), bad], { takesUnsigned: true })).unsigned).toEqual([2]);
    },
  );
});

describe('a restore with a ledger', () => {
  test('a restore with an unsigned line changes nothing; with --take-unsigned it applies and names the line', async () => {
    const fixture = await createBackupFixture(3);
    const { database, backup } = copyBackupFixture(fixture);
    const [first, second] = fixture.before as [Fixture, Fixture];
    const before = contentOf(database);
    const keys = await logKeysOf(database);
    const at = program.clock.now();
    const ledger = join(freshFolder(), 'ledger.jsonl');
    const own = erasureLine({ realm: first.realm, user: first.user, at }, keys);
    const foreign = erasureLine({ realm: second.realm, user: second.user, at }, FOREIGN);
    writeFileSync(ledger, `${own}\n${foreign}\n`);
    const args = ['restore', backup, '--replace', '--yes', '--ledger', ledger];
    const refused = await runOnFile(database, ...args);
    expect([refused.code, refused.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(/^.*line 2 of the ledger .* is not signed by the installation/),
    ]);
    expect(contentOf(database)).toEqual(before);
    const applied = await runOnFile(database, ...args, '--take-unsigned', '--json');
    expect([applied.code, JSON.parse(applied.stdout)]).toMatchObject([
      EXIT.done,
      { erasures_applied: 2, users_erased: 2, unsigned_lines: [2] },
    ]);
    const again = await runOnFile(database, ...args, '--take-unsigned');
    expect(again.stdout).toMatch(/^unsigned_lines +\[2\]$/m);
  });

  test('a restore with a malformed or missing ledger is refused and changes nothing', async () => {
    const { database, backup } = copyBackupFixture(await createBackupFixture(1));
    const ledger = join(freshFolder(), 'ledger.jsonl');
    const before = contentOf(database);
    const missing = await runOnFile(database, 'restore', backup, '--replace', '--yes', '--ledger', ledger);
    expect([missing.code, missing.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(/ledger .* does not exist/),
    ]);
    writeFileSync(ledger, '{"kind":"erasure"');
    const malformed = await runOnFile(database, 'restore', backup, '--replace', '--yes', '--ledger', ledger);
    expect([malformed.code, malformed.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(/line 1 of the ledger/),
    ]);
    expect(contentOf(database)).toEqual(before);
  });

  test('a restore that cannot record itself with the checkpoints completes, and prints the line to add', async () => {
    const { database, backup } = copyBackupFixture(await createBackupFixture(1));
    const args = ['--replace', '--yes', '--checkpoint-file', join(freshFolder(), 'missing', 'points')];
    const { code, stderr } = await runOnFile(database, 'restore', backup, ...args);
    expect([code, stderr]).toEqual([
      EXIT.done,
      expect.stringContaining('could not be recorded with the checkpoints (ENOENT)'),
    ]);
    const content = readLine(stderr.trim().split('\n').at(-1) ?? '', await logKeysOf(database));
    expect(content).toMatchObject({ kind: 'restore', isSigned: true });
  });
});
