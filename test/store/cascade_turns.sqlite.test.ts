import { afterAll, beforeAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { user } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type Engine, openEngine } from '../../src/store/open.ts';
import { freshFolder } from '../support/folder.ts';
import { anotherUser, crowdedGround, logged, oidcLink, put, removing } from './contract/store_fixtures.ts';

/** A commit of SQLite holds the event loop: what is long has a turn of its own, what is short shares one. */

let engine: Engine;
beforeAll(async () => {
  const address = { engine: 'sqlite', path: join(freshFolder(), 'turns.db') } as const;
  engine = await openEngine(address, 'auto', { version: 'test', clock: systemClock });
});
afterAll(() => engine.close());

/** The turns of the event loop in which each of these was answered. */
async function turnsOf(asked: readonly Promise<unknown>[]): Promise<readonly number[]> {
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  const turns = await Promise.all(asked.map((each) => each.then(() => turn)));
  isOver = true;
  return turns;
}

const CROWD = 8;

test('removals of as many records as the limit run in one turn each', async () => {
  const ids = await crowdedGround(engine.records, 0);
  const owners = await Promise.all(
    Array.from({ length: CROWD }, () => put(engine.records, anotherUser(ids))),
  );
  for (const { key } of owners) {
    const owner = { ...ids, user: key[1] as Uuid };
    const links = Array.from({ length: LIMITS.cascadeRecordsMax }, (_, at) =>
      oidcLink(owner, `${key[1]}-${at}`),
    );
    const verdict = await engine.records.commit(links.map(logged));
    expect(verdict.kind).toBe('written');
  }
  const removed = owners.map(({ key }) => engine.records.remove(removing(user, key)));
  expect(new Set(await turnsOf(removed)).size).toBe(CROWD);
  expect(await Promise.all(removed)).toEqual(Array(CROWD).fill({ kind: 'removed' }));
}, 300_000);

test('small writes share one turn', async () => {
  const ids = await crowdedGround(engine.records, 0);
  const write = (name: string) => put(engine.records, oidcLink(ids, name));
  // A commit takes no further work after LIMITS.commitWorkMsMax: code that is not compiled yet must not count.
  await Promise.all(Array.from({ length: 100 }, (_, at) => write(`first-${at}`)));
  const writes = Array.from({ length: 100 }, (_, at) => write(`small-${at}`));
  expect(new Set(await turnsOf(writes)).size).toBe(1);
});

test('removals refused as too_many do not run in one turn', async () => {
  const ids = await crowdedGround(engine.records, LIMITS.cascadeRecordsMax);
  const refused = Array.from({ length: CROWD }, () =>
    engine.records.remove(removing(user, [ids.realm, ids.user])),
  );
  expect(new Set(await turnsOf(refused)).size).toBe(CROWD);
  expect(await Promise.all(refused)).toEqual(Array(CROWD).fill({ kind: 'too_many' }));
}, 300_000);
