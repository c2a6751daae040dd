import { afterAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import { freshFolder } from '../support/folder.ts';
import {
  anotherUser,
  commitWritten,
  createUserWithLinks,
  oidcLink,
  removalOf,
  removeRecord,
} from './contract/store_fixtures.ts';

/** A SQLite commit blocks the event loop: each long write gets its own turn, short writes share one. */

const address = { engine: 'sqlite', path: join(freshFolder(), 'turns.db') } as const;
const engine = await openEngine(address, 'auto', { version: 'test', clock: systemClock });
afterAll(() => engine.close());

/** The event loop turn in which each call settled. */
async function turnsOf(calls: readonly Promise<unknown>[]): Promise<readonly number[]> {
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  const turns = await Promise.all(calls.map((each) => each.then(() => turn)));
  isOver = true;
  return turns;
}

const REMOVALS = 8;

test('each removal of cascadeRecordsMax records runs in its own event loop turn', async () => {
  const ids = await createUserWithLinks(engine.records, 0);
  const owners = await Promise.all(
    Array.from({ length: REMOVALS }, () => commitWritten(engine.records, anotherUser(ids))),
  );
  for (const { key } of owners) {
    const owner = { ...ids, user: key[1] as Uuid };
    const links = Array.from({ length: LIMITS.cascadeRecordsMax }, (_, at) =>
      oidcLink(owner, `${key[1]}-${at}`),
    );
    const result = await engine.records.commit(links);
    expect(result.kind).toBe('written');
  }
  const removed = owners.map(({ key }) => removeRecord(engine.records, removalOf(user, key)));
  expect(new Set(await turnsOf(removed)).size).toBe(REMOVALS);
  expect(await Promise.all(removed)).toEqual(Array(REMOVALS).fill({ kind: 'removed' }));
}, 300_000);

test('concurrent small writes share one event loop turn', async () => {
  const ids = await createUserWithLinks(engine.records, 0);
  const write = (name: string) => commitWritten(engine.records, oidcLink(ids, name));
  // Warms up the code: a commit takes no further work after LIMITS.commitWorkMsMax.
  await Promise.all(Array.from({ length: 100 }, (_, at) => write(`first-${at}`)));
  let turns = 0;
  // A busy machine may interrupt a commit for as long.
  for (let tries = 0; tries < 20 && turns !== 1; tries += 1) {
    const writes = Array.from({ length: 20 }, (_, at) => write(`small-${tries}-${at}`));
    turns = new Set(await turnsOf(writes)).size;
  }
  expect(turns).toBe(1);
});

test('each removal refused as too_many runs in its own event loop turn', async () => {
  const ids = await createUserWithLinks(engine.records, LIMITS.cascadeRecordsMax);
  const refused = Array.from({ length: REMOVALS }, () =>
    removeRecord(engine.records, removalOf(user, [ids.realm, ids.user])),
  );
  expect(new Set(await turnsOf(refused)).size).toBe(REMOVALS);
  expect(await Promise.all(refused)).toEqual(Array(REMOVALS).fill({ kind: 'too_many' }));
}, 300_000);
