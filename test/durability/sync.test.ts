import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findInconsistencies } from '../support/consistency.ts';
import { acknowledgedLines, lastAcknowledged } from '../support/killed_import.ts';
import { missingIds } from '../support/killed_process.ts';
import { createRealm, idsInLines } from '../support/killed_writers.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';
import { buildShim, type Disk, openDisk } from './disk.ts';
import { earlyAcknowledgements } from './order.ts';

// There are hundreds of syncs, each as slow as the disk.
setDefaultTimeout(300_000);

const library = buildShim();
const started: { kill(signal: 'SIGKILL'): void }[] = [];
afterAll(() => {
  for (const child of started) child.kill('SIGKILL');
});

const WRITES = { requests: /^requested /, acknowledges: /^committed / };
/** The report of a rejected line acknowledges the commit of the lines before it. */
const IMPORTS = { requests: /^line \d+: /, acknowledges: /^line \d+: / };
const LINES = join(freshFolder(), 'lines.ndjson');
const FILE = acknowledgedLines(7_000);
writeFileSync(LINES, `${FILE.join('\n')}\n`);
const ALREADY_INITIALIZED = expect.stringContaining('already has clients: create another client with');
const SYNCHRONOUS = ['off', 'normal'] as const;

function weakenedSync(to: (typeof SYNCHRONOUS)[number]): Record<string, string> {
  return { BUN_OPTIONS: `--preload ${join(import.meta.dir, 'unsynced.ts')}`, FORCE_SYNCHRONOUS: to };
}

async function startWriter(disk: Disk, environment: Record<string, string> = {}, atOnce = 1) {
  const path = join(freshFolder(), 'force.db');
  const realm = await createRealm(path);
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

function assertSound(path: string, acknowledged: readonly string[]): void {
  expect(findInconsistencies(path)).toEqual([]);
  expect(missingIds(path, acknowledged)).toEqual([]);
}

const idsOfLines = (count: number): string[] =>
  FILE.slice(0, count).flatMap((line) =>
    ((id?: string) => (id === undefined ? [] : [id]))(JSON.parse(line).id),
  );

describe('acknowledgements and syncs', () => {
  test.each([1, 8])(
    'with %p concurrent writers, each write is acknowledged after the sync of its commit',
    async (atOnce) => {
      const disk = openDisk(library);
      const { path, child } = await startWriter(disk, {}, atOnce);
      await disk.has(/^committed /, 400);
      child.kill('SIGTERM');
      expect(await child.exited).toBe(0);
      expect(earlyAcknowledgements(disk.journal(), WRITES)).toEqual([]);
      assertSound(path, idsInLines('committed', disk.journal()));
    },
  );

  test('an import acknowledges lines after the sync of their commit', async () => {
    const disk = openDisk(library);
    const path = join(freshFolder(), 'force.db');
    await createRealm(path);
    expect(await startImport(disk, path).exited).toBe(3);
    expect(disk.journal().match(/^line \d+: /gm)).toHaveLength(3);
    expect(earlyAcknowledgements(disk.journal(), IMPORTS)).toEqual([]);
  });

  test.each(SYNCHRONOUS)(
    'with synchronous = %s, acknowledgements before the sync are detected',
    async (to) => {
      const disk = openDisk(library);
      const { child } = await startWriter(disk, weakenedSync(to));
      await disk.has(/^committed /, 50);
      child.kill('SIGKILL');
      await child.exited;
      const early = earlyAcknowledgements(disk.journal(), WRITES);
      expect(early.length).toBeGreaterThan(idsInLines('committed', disk.journal()).length / 2);

      const other = openDisk(library);
      const path = join(freshFolder(), 'force.db');
      await createRealm(path);
      await startImport(other, path, weakenedSync(to)).exited;
      expect(earlyAcknowledgements(other.journal(), IMPORTS).length).toBeGreaterThan(0);
    },
  );

  test('earlyAcknowledgements finds every acknowledgement without a complete sync before it', () => {
    const early = (...lines: string[]) => earlyAcknowledgements(lines.join('\n'), WRITES);
    const [wrote, syncing, synced, failed] = ['wrote', 'syncing', 'synced', 'failed'].map(
      (what) => `disk 1 ${what} a.db-wal`,
    ) as [string, string, string, string];
    expect(early('requested 1', wrote, syncing, synced, 'committed 1')).toEqual([]);
    expect(early('requested 1', wrote, 'committed 1', syncing, synced)).toEqual(['committed 1']);
    expect(early('requested 1', wrote, syncing, 'committed 1', synced)).toEqual(['committed 1']);
    expect(early('requested 1', wrote, syncing, failed, 'committed 1')).toEqual(['committed 1']);
    expect(early('requested 1', wrote, syncing, wrote, synced, 'committed 1')).toEqual(['committed 1']);
    expect(early('requested 1', wrote, syncing, synced, 'committed 1', 'requested 2', 'committed 2')).toEqual(
      ['committed 2'],
    );
    expect(early('requested 1', wrote, 'disk 1 syncing a.db', 'disk 1 synced a.db', 'committed 1')).toEqual([
      'committed 1',
    ]);
  });
});

describe('failing syncs', () => {
  test.each([1, 8])(
    'with %p concurrent writers, a failed sync acknowledges nothing, and writes succeed again with the syncs',
    async (atOnce) => {
      const disk = openDisk(library);
      const { path, child } = await startWriter(disk, {}, atOnce);
      for (let round = 1; round <= 3; round += 1) {
        await disk.has(/^committed /, round * 40);
        disk.fail();
        await disk.has(/^failed \S+ unavailable$/, round * 40);
        disk.heal();
      }
      await disk.has(/^committed /, idsInLines('committed', disk.journal()).length + 40);
      child.kill('SIGTERM');
      expect(await child.exited).toBe(0);
      expect(earlyAcknowledgements(disk.journal(), WRITES)).toEqual([]);
      assertSound(path, idsInLines('committed', disk.journal()));
    },
  );

  test('a process killed while syncs fail has acknowledged only durable writes', async () => {
    const disk = openDisk(library);
    const { path, child } = await startWriter(disk);
    await disk.has(/^committed /, 40);
    disk.fail();
    await disk.has(/^failed \S+ unavailable$/, 40);
    child.kill('SIGKILL');
    await child.exited;
    disk.heal();
    expect(earlyAcknowledgements(disk.journal(), WRITES)).toEqual([]);
    assertSound(path, idsInLines('committed', disk.journal()));
  });

  test('an import reports a failed sync at any commit, and the same import later completes', async () => {
    const failAndRepeat = async (spared: number) => {
      const disk = openDisk(library);
      const path = join(freshFolder(), 'force.db');
      await createRealm(path);
      disk.fail(spared);
      expect(await startImport(disk, path).exited).toBe(1);
      expect(disk.journal()).toMatch(
        /^authrealm: the import stopped because the database failed: .*I\/O error/m,
      );
      expect(earlyAcknowledgements(disk.journal(), IMPORTS)).toEqual([]);
      assertSound(path, idsOfLines(lastAcknowledged(disk.journal())));
      disk.heal();
      expect(await startImport(disk, path).exited).toBe(3);
      assertSound(path, idsOfLines(FILE.length));
    };
    // Each import tries its commit again for a minute.
    await Promise.all([0, 2].map(failAndRepeat));
  });

  test('init reports a failure at any sync, and a second init completes', async () => {
    for (let spared = 0; ; spared += 1) {
      const disk = openDisk(library);
      const path = join(freshFolder(), 'force.db');
      const init = [AUTHREALM, 'init', '--database', `sqlite:${path}`];
      disk.fail(spared);
      const code = await disk.start(init).exited;
      if (!/^disk \d+ failed /m.test(disk.journal())) break;
      const output = disk.journal().replace(/^disk .*\n/gm, '');
      if (code !== 0)
        expect([spared, code, output]).toEqual([spared, 1, expect.stringMatching(/^authrealm: .+\n$/)]);
      const { stderr, code: secondCode } = await runCommand(init);
      // A commit that failed may be in the write-ahead log nevertheless, so the second run finds it.
      const isInitialized = code === 0 || secondCode !== 0;
      expect([spared, secondCode, stderr]).toEqual([
        spared,
        ...(isInitialized ? [1, ALREADY_INITIALIZED] : [0, '']),
      ]);
      expect(findInconsistencies(path)).toEqual([]);
    }
  });
});

test('a read-only disk acknowledges nothing, and writes succeed again once it is writable', async () => {
  const disk = openDisk(library);
  const { path, child } = await startWriter(disk);
  await disk.has(/^committed /, 40);
  disk.makeReadOnly();
  await disk.has(/^failed \S+ unavailable$/, 40);
  disk.heal();
  await disk.has(/^committed /, idsInLines('committed', disk.journal()).length + 40);
  child.kill('SIGTERM');
  expect(await child.exited).toBe(0);
  assertSound(path, idsInLines('committed', disk.journal()));
});
