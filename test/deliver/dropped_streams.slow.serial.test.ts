import { expect, test } from 'bun:test';
import { connect } from 'node:net';
import { LIMITS } from '../../src/model/limits.ts';
import { openFreshDatabase } from '../support/database.ts';
import { resourcesOf } from '../support/process_tree.ts';
import { createFixture, LOOKUPS } from '../support/service.ts';
import { startServiceProcess } from '../support/service_process.ts';

/** Change streams whose readers disconnect: what a process holds, and how fast its lookups are, is as before. */

/** A long run sets 10000. */
const STREAMS = Number(process.env.AUTHREALM_TEST_DROPPED_STREAMS ?? 600);
/** Streams after which the process has compiled its code and filled its caches. */
const WARM_UP = 200;
const DESCRIPTORS_MORE_MAX = 4;
/** For any number of streams: 10,000 that leave 4 KB each would exceed it. */
const GROWTH_MB_MAX = 40;
const LOOKUPS_MEASURED = 500;
/** The machine runs other suites; a list that grows with the streams would be slower by more. */
const SLOWER_MAX = 3;

const [{ path }] = LOOKUPS;

const { database, db } = await openFreshDatabase();
const fixture = await createFixture(db);
await db.engine.close();
const service = await startServiceProcess({ database, scope: 'changes:read profile-infos:read' });
const token = await service.token();

/** Opens a stream over a socket of its own. Resolves with its status once the first change has arrived. */
async function openStream() {
  const { port, hostname } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  const { promise, resolve } = Promise.withResolvers<number>();
  let text = '';
  socket.on('data', (part) => {
    text += part.toString('latin1');
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
    if (status !== 200 || text.includes('data: ')) resolve(status);
  });
  socket.on('error', () => resolve(0));
  socket.write(
    `GET /v2/authentication-realms/${fixture.realm}/changes HTTP/1.1\r\nHost: a\r\n` +
      `Authorization: Bearer ${token}\r\nAccept: text/event-stream\r\n\r\n`,
  );
  return { status: await promise, drop: () => socket.destroy() };
}

/** Opens and drops so many streams, as many at once as a client may have. Returns how often one had to be opened again. */
async function dropStreams(count: number): Promise<number> {
  let [opened, repeated] = [0, 0];
  const drop = async () => {
    while (opened < count) {
      opened += 1;
      let stream = await openStream();
      // Its place is free once the process has noticed that an earlier one is closed.
      for (; stream.status === 503; repeated += 1) {
        stream.drop();
        await Bun.sleep(2);
        stream = await openStream();
      }
      expect(stream.status).toBe(200);
      stream.drop();
    }
  };
  await Promise.all(Array.from({ length: LIMITS.streamsPerClientMax }, drop));
  return repeated;
}

/** Descriptors, memory and the time of a lookup that other programs do not delay, a while after the last request. */
async function measure() {
  await Bun.sleep(2_000);
  const times: number[] = [];
  for (let lookup = 0; lookup < LOOKUPS_MEASURED; lookup += 1) {
    const start = performance.now();
    expect((await service.withoutRetry.get(path(fixture), token)).status).toBe(200);
    times.push(performance.now() - start);
  }
  times.sort((one, other) => one - other);
  const { descriptors, anonymousMb } = resourcesOf(service.running.process.pid);
  return { descriptors, anonymousMb, lookupMs: times[LOOKUPS_MEASURED / 10] as number };
}

test('streams that are opened and dropped leave no descriptor, no memory and no slower lookups', async () => {
  await dropStreams(WARM_UP);
  const before = await measure();
  const repeated = await dropStreams(STREAMS);
  const after = await measure();
  console.log(JSON.stringify({ streams: STREAMS, repeated, before, after }));
  expect(after.descriptors).toBeLessThanOrEqual(before.descriptors + DESCRIPTORS_MORE_MAX);
  expect(after.anonymousMb).toBeLessThan(before.anonymousMb + GROWTH_MB_MAX);
  expect(after.lookupMs).toBeLessThan(before.lookupMs * SLOWER_MAX);
  // Every place of the client is free again.
  const streams = await Promise.all(Array.from({ length: LIMITS.streamsPerClientMax }, openStream));
  expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200));
  for (const { drop } of streams) drop();
}, 900_000);
