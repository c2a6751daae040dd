import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { disagreements } from '../support/agreement.ts';
import { acknowledgedLines, lastAcknowledged } from '../support/killed_import.ts';
import { lostOf } from '../support/killed_process.ts';
import { freshRealm, idsAfter } from '../support/killed_writers.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';
import { buildShim, type Disk, openDisk } from './disk.ts';
import { earlyAcknowledgements } from './order.ts';

// Syncs come by the hundred, and how long each takes is for the disk to say.
setDefaultTimeout(300_000);

const library = buildShim();
const started: { kill(signal: 'SIGKILL'): void }[] = [];
afterAll(() => {
  for (const child of started) child.kill('SIGKILL');
});

const WRITES = { asks: /^asking /, acknowledges: /^kept / };
/** A line that is told as refused acknowledges the commit of those before it. */
const IMPORTS = { asks: /^line \d+: /, acknowledges: /^line \d+: / };
const LINES = join(freshFolder(), 'lines.ndjson');
const FILE = acknowledgedLines(7_000);
writeFileSync(LINES, `${FILE.join('\n')}\n`);
const THERE = expect.stringContaining('already has clients: create another one with');
const SYNCHRONOUS = ['off', 'normal'] as const;

function weakened(to: (typeof SYNCHRONOUS)[number]): Record<string, string> {
  return { BUN_OPTIONS: `--preload ${join(import.meta.dir, 'unsynced.ts')}`, FORCE_SYNCHRONOUS: to };
}

async function startWriter(disk: Disk, environment: Record<string, string> = {}, atOnce = 1) {
  const path = join(freshFolder(), 'force.db');
  const realm = await freshRealm(path);
  const script = join(import.meta.dir, '../support/killed_writer.ts');
  const child = disk.start([process.execPath, script, `sqlite:${path}`, realm, String(atOnce)], environment);
  started.push(child);
  return { path, child };
}

function startImport(disk: Disk, path: string, environment: Record<string, string> = {}) {
  const from = ['import', LINES, '--on-error', 'skip', '--database', `sqlite:${path}`];
  const child = disk.start([AUTHREALM, ...from], environment);
  started.push(child);
  return child;
}

function isSound(path: string, acknowledged: readonly string[]): void {
  expect(disagreements(path)).toEqual([]);
  expect(lostOf(path, acknowledged)).toEqual([]);
}

const idsOfLines = (count: number): string[] =>
  FILE.slice(0, count).flatMap((line) =>
    ((id?: string) => (id === undefined ? [] : [id]))(JSON.parse(line).id),
  );

describe('no acknowledgement leaves before the sync of its commit', () => {
  test.each([1, 8])('of single records, %p at once', async (atOnce) => {
    const disk = openDisk(library);
    const { path, child } = await startWriter(disk, {}, atOnce);
    await disk.has(/^kept /, 400);
    child.kill('SIGTERM');
    expect(await child.exited).toBe(0);
    expect(earlyAcknowledgements(disk.journal(), WRITES)).toEqual([]);
    isSound(path, idsAfter('kept', disk.journal()));
  });

  test('of the commits of an import', async () => {
    const disk = openDisk(library);
    const path = join(freshFolder(), 'force.db');
    expect(await startImport(disk, path).exited).toBe(3);
    expect(disk.journal().match(/^line \d+: /gm)).toHaveLength(3);
    expect(earlyAcknowledgements(disk.journal(), IMPORTS)).toEqual([]);
  });

  test.each(SYNCHRONOUS)('and with synchronous = %s this is seen not to hold', async (to) => {
    const disk = openDisk(library);
    const { child } = await startWriter(disk, weakened(to));
    await disk.has(/^kept /, 50);
    child.kill('SIGKILL');
    await child.exited;
    const early = earlyAcknowledgements(disk.journal(), WRITES);
    expect(early.length).toBeGreaterThan(idsAfter('kept', disk.journal()).length / 2);

    const other = openDisk(library);
    await startImport(other, join(freshFolder(), 'force.db'), weakened(to)).exited;
    expect(earlyAcknowledgements(other.journal(), IMPORTS).length).toBeGreaterThan(0);
  });

  test('the reading of the lines itself tells early from late', () => {
    const early = (...lines: string[]) => earlyAcknowledgements(lines.join('\n'), WRITES);
    const [wrote, syncing, synced, failed] = ['wrote', 'syncing', 'synced', 'failed'].map(
      (what) => `disk 1 ${what} a.db-wal`,
    ) as [string, string, string, string];
    expect(early('asking 1', wrote, syncing, synced, 'kept 1')).toEqual([]);
    expect(early('asking 1', wrote, 'kept 1', syncing, synced)).toEqual(['kept 1']);
    expect(early('asking 1', wrote, syncing, 'kept 1', synced)).toEqual(['kept 1']);
    expect(early('asking 1', wrote, syncing, failed, 'kept 1')).toEqual(['kept 1']);
    expect(early('asking 1', wrote, syncing, wrote, synced, 'kept 1')).toEqual(['kept 1']);
    expect(early('asking 1', wrote, syncing, synced, 'kept 1', 'asking 2', 'kept 2')).toEqual(['kept 2']);
    expect(early('asking 1', wrote, 'disk 1 syncing a.db', 'disk 1 synced a.db', 'kept 1')).toEqual([
      'kept 1',
    ]);
  });
});

describe('a sync that fails acknowledges nothing', () => {
  test.each([1, 8])(
    'of single records, %p at once; when syncs succeed again, so do writes',
    async (atOnce) => {
      const disk = openDisk(library);
      const { path, child } = await startWriter(disk, {}, atOnce);
      for (let round = 1; round <= 3; round += 1) {
        await disk.has(/^kept /, round * 40);
        disk.fail();
        await disk.has(/^failed \S+ unavailable$/, round * 40);
        disk.heal();
      }
      await disk.has(/^kept /, idsAfter('kept', disk.journal()).length + 40);
      child.kill('SIGTERM');
      expect(await child.exited).toBe(0);
      expect(earlyAcknowledgements(disk.journal(), WRITES)).toEqual([]);
      isSound(path, idsAfter('kept', disk.journal()));
    },
  );

  test('of single records, where the process ends by force before syncs succeed again', async () => {
    const disk = openDisk(library);
    const { path, child } = await startWriter(disk);
    await disk.has(/^kept /, 40);
    disk.fail();
    await disk.has(/^failed \S+ unavailable$/, 40);
    child.kill('SIGKILL');
    await child.exited;
    disk.heal();
    expect(earlyAcknowledgements(disk.journal(), WRITES)).toEqual([]);
    isSound(path, idsAfter('kept', disk.journal()));
  });

  test('of an import, from its first commit on or a later one; it says so, and the same file again brings the rest', async () => {
    for (const spared of [0, 2]) {
      const disk = openDisk(library);
      const path = join(freshFolder(), 'force.db');
      await freshRealm(path);
      disk.fail(spared);
      expect(await startImport(disk, path).exited).toBe(1);
      expect(disk.journal()).toMatch(
        /^authrealm: the import stopped because the database failed: .*I\/O error/m,
      );
      expect(earlyAcknowledgements(disk.journal(), IMPORTS)).toEqual([]);
      isSound(path, idsOfLines(lastAcknowledged(disk.journal())));
      disk.heal();
      expect(await startImport(disk, path).exited).toBe(3);
      isSound(path, idsOfLines(FILE.length));
    }
  });

  test('of init, from whichever sync on: it ends with a sentence, and leaves what another init goes on from', async () => {
    for (let spared = 0; ; spared += 1) {
      const disk = openDisk(library);
      const path = join(freshFolder(), 'force.db');
      const init = [AUTHREALM, 'init', '--database', `sqlite:${path}`];
      disk.fail(spared);
      const code = await disk.start(init).exited;
      if (!/^disk \d+ failed /m.test(disk.journal())) break;
      const said = disk.journal().replace(/^disk .*\n/gm, '');
      if (code !== 0)
        expect([spared, code, said]).toEqual([spared, 1, expect.stringMatching(/^authrealm: .+\n$/)]);
      const { stderr, code: later } = await runCommand(init);
      // A commit that was answered with trouble may have reached the log all the same, and be found there.
      const isThere = code === 0 || later !== 0;
      expect([spared, later, stderr]).toEqual([spared, ...(isThere ? [1, THERE] : [0, ''])]);
      expect(disagreements(path)).toEqual([]);
    }
  });
});

test('a disk that has become read-only acknowledges nothing; when it is writable again, writes go on', async () => {
  const disk = openDisk(library);
  const { path, child } = await startWriter(disk);
  await disk.has(/^kept /, 40);
  disk.makeReadOnly();
  await disk.has(/^failed \S+ unavailable$/, 40);
  disk.heal();
  await disk.has(/^kept /, idsAfter('kept', disk.journal()).length + 40);
  child.kill('SIGTERM');
  expect(await child.exited).toBe(0);
  isSound(path, idsAfter('kept', disk.journal()));
});
