import { expect, test } from 'bun:test';
import { getEventListeners } from 'node:events';
import { sleep } from '../../src/client/retries.ts';

test('a wait with a signal leaves no listener on it, also if the signal was aborted before', async () => {
  const controller = new AbortController();
  const { signal } = controller;
  await sleep(0, signal);
  const waiting = sleep(60_000, signal);
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  controller.abort('stopped');
  for (const wait of [waiting, sleep(60_000, signal)]) {
    const reason = await wait.catch((error) => error);
    expect([reason, getEventListeners(signal, 'abort')]).toEqual(['stopped', []]);
  }
});
