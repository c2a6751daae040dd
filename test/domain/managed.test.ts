import { expect, test } from 'bun:test';
import type { Revision } from '../../src/domain/id.ts';
import { changeManaged, type Managed } from '../../src/domain/managed.ts';

interface Counter extends Managed {
  readonly count: number;
}

const nextRevision = (revision: Revision) => String(Number(revision) + 1) as Revision;

test('concurrent changes of one object are each saved once', async () => {
  const start = { disabledAt: undefined, createdAt: 0, updatedAt: 0, revision: '0' as Revision };
  let stored: Counter = { ...start, count: 0 };
  let saves = 0;
  const context = { now: () => 1, mintRevision: () => nextRevision(stored.revision) };
  const change = {
    id: 'counter',
    find: () => stored,
    edit: ({ count }: Counter) => ({ count: count + 1 }),
    async save(changed: Counter, found: Counter) {
      saves += 1;
      await Bun.sleep(0);
      if (found.revision !== stored.revision) return false;
      stored = changed;
      return true;
    },
  };
  await Promise.all(Array.from({ length: 20 }, () => changeManaged<Counter>(change, context)));
  expect([stored.count, saves]).toEqual([20, 20]);
});

test('a change that fails lets the next one of the object run', async () => {
  const stored = { disabledAt: undefined, createdAt: 0, updatedAt: 0, revision: '0' as Revision };
  const context = { now: () => 1, mintRevision: () => '1' as Revision };
  const fail = () => Promise.reject(new Error('no space'));
  const change = { id: 'full', find: () => stored, edit: {}, save: () => Promise.resolve(true) };
  const failed = changeManaged<Managed>({ ...change, save: fail }, context);
  const next = changeManaged<Managed>(change, context);
  await expect(failed).rejects.toThrow('no space');
  expect(await next).toMatchObject({ revision: '1' });
});
