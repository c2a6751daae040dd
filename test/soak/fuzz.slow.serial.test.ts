import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Uuid } from '../../src/domain/id.ts';
import { freshDatabase } from '../support/database.ts';
import type { JsonObject } from '../support/json_schema.ts';
import { type OperationResponse, operationsOf } from '../support/openapi_client.ts';
import { startCommand } from '../support/processes.ts';
import { freshSeed } from '../support/random.ts';
import { startService } from '../support/service.ts';
import { startServiceProcess } from '../support/service_process.ts';
import { openAnswers } from './fuzzing/answers.ts';
import {
  COLLECTING,
  type Curve,
  type Growth,
  growthBeside,
  growthsOf,
  heldBy,
  minutesOf,
  type Sample,
  watch,
} from './fuzzing/memory.ts';
import { PROPERTIES } from './fuzzing/parsers.ts';
import type { Asked } from './fuzzing/requests.ts';
import { SOCKET_SCOPE, weather } from './fuzzing/sockets.ts';
import { fireAt } from './fuzzing/surface.ts';
import { tokenProperty } from './fuzzing/tokens.ts';

/** A short run of `test/soak/fuzz.ts`, and what its judges find in answers that are wrong. */

setDefaultTimeout(300_000);

const seed = freshSeed();
const service = await startService({ offline: 'true', badTokenRate: 'off', requestLogging: 'full' });
const document = (await (await service.get('/openapi.json')).json()) as JsonObject;
const operations = operationsOf(document);
afterAll(() => service.stop());

test('requests made from the document are answered as it says', async () => {
  const credentials = (scope: string, realms?: readonly string[]) =>
    service.client(scope, realms === undefined ? '*' : new Set(realms as readonly Uuid[]));
  const target = { url: service.url, credentials };
  const answered = () => service.log.filter(({ event }) => event === 'request').length;
  const counts: number[] = [];
  const rest = {
    afterMs: 1_000,
    async during() {
      counts.push(answered());
      await Bun.sleep(300);
      counts.push(answered());
    },
  };
  const fired = await fireAt(target, { seed, requests: 1_200, millisecondsMax: 45_000, atOnce: 8, rest });
  expect({ seed, complaints: fired.complaints }).toEqual({ seed, complaints: [] });
  const [before = 0, after] = counts;
  expect({ seed, after, times: counts.length }).toEqual({ seed, after: before, times: 2 });
  expect(answered()).toBeGreaterThan(before);
  // A machine that has much else to do sends fewer.
  expect(fired.sent).toBeGreaterThan(300);
  expect(fired.right.done).toBeGreaterThan(fired.right.sent * 0.7);
  expect(fired.readBack).toBeGreaterThan(fired.sent * 0.01);
  const statuses = new Set([...fired.statuses.keys()].map((name) => name.split(' ')[1]));
  for (const status of ['200', '201', '204', '400', '401', '404', '405']) expect(statuses).toContain(status);
});

test('connections of every kind leave the service as it was', async () => {
  const database = await freshDatabase();
  const served = await startServiceProcess({ database, scope: SOCKET_SCOPE, flags: ['--offline'] });
  const storm = { seed, connections: 150, atOnce: 16, slow: 20, slowMs: 1_000, slowerMsMax: 250 };
  const { complaints, kinds } = await weather(served, storm);
  expect({ seed, complaints }).toEqual({ seed, complaints: [] });
  expect(kinds.size).toBe(8);
  expect(await served.running.stop()).toBe(0);
});

describe('whatever it is given,', () => {
  test.each(PROPERTIES.map(({ name, check }) => [name, check] as const))('%s', async (_, check) => {
    await check(300, seed | 0);
  });

  test('a token is one or none', async () => {
    const { check } = await tokenProperty(service);
    await check(300, seed | 0);
  });
});

describe('the judge of memory', () => {
  const vitals = (processes: number, anonymousMb: number, residentMb: number) => ({
    ...{ processes, anonymousMb, residentMb },
    descriptors: 9 * processes,
  });
  /** What is held where so much is kept, `databaseMb` of it pages of the database. */
  function sampleOf(second: number, mb: number, besideMb = 25): Sample {
    const databaseMb = second / 20;
    const own = vitals(1, mb, mb + 50 + databaseMb);
    return { second, own, databaseMb, beside: vitals(2, 2 * besideMb, 100) };
  }
  const curveOf = (seconds: number, besideMb: (second: number) => number): Pick<Curve, 'samples'> => ({
    samples: Array.from({ length: seconds }, (_, second) => sampleOf(second, 90, besideMb(second))),
  });
  const grown = (growths: readonly Growth[]) =>
    growths.filter(({ share }) => share > 0.1).map(({ of }) => of);

  test('takes the database for none of it', () => {
    expect(grown(growthsOf(sampleOf(60, 90), sampleOf(600, 95)))).toEqual([]);
  });

  test('finds what is kept, in the service and in what works beside it', () => {
    const both = ['at rest, resident beside the database', 'at rest, not of files'];
    expect(grown(growthsOf(sampleOf(60, 90), sampleOf(600, 120)))).toEqual(both);
    expect(grown(growthBeside(curveOf(600, (second) => 25 + second / 60)))).toEqual([
      'not of files in each process beside',
    ]);
    expect(grown(growthBeside(curveOf(600, (second) => 25 - Math.min(second, 60) / 60)))).toEqual([]);
    expect(growthBeside(curveOf(230, () => 25))).toEqual([]);
  });

  test('tells minute by minute', () => {
    const [first, ...others] = minutesOf(curveOf(600, () => 25));
    expect(first).toBe(
      'minute 1: 140.0 to 142.9 MB resident, 0.0 to 3.0 MB of the database, 90.0 to 90.0 MB not of files, 9 to 9 descriptors, 2 to 2 processes beside, 25.0 to 25.0 MB not of files in each',
    );
    expect(others).toHaveLength(8);
  });

  test('counts no second in which nothing is asked', async () => {
    const curve = watch(process.pid, '/nowhere');
    await curve.rest(() => Bun.sleep(2_500));
    expect(curve.samples).toEqual([]);
    while (curve.samples.length === 0) await Bun.sleep(100);
    curve.stop();
    expect(curve.samples[0]?.second).toBeLessThan(2);
  });

  test('sees what a process holds, and has it collect its garbage', async () => {
    const rests = { restMs: 400, givingBackMs: 0 };
    const script = `let kept = Array.from({ length: 2e6 }, (_, at) => ({ at })); console.log('made'); process.stdin.once('data', () => { kept = []; console.log('freed'); });`;
    const running = startCommand([process.execPath, '--preload', COLLECTING, '-e', script]);
    await running.line(/^made/);
    const full = await heldBy(running.process.pid, '/nowhere', rests);
    running.process.stdin.write('x');
    running.process.stdin.flush();
    await running.line(/^freed/);
    const empty = await heldBy(running.process.pid, '/nowhere', rests);
    await running.stop();
    expect(full.own.anonymousMb).toBeGreaterThan(2 * empty.own.anonymousMb);
  });

  test('has it let go of compiled code', async () => {
    const script = `
      const { heapStats } = require('bun:jsc');
      const tell = (at) => console.log(at, heapStats().objectTypeCounts.FunctionCodeBlock);
      const kept = Array.from({ length: 3_000 }, (_, at) => new Function('return ' + at));
      for (const each of kept) each();
      tell('before');
      process.stdin.once('data', () => tell('after'));`;
    const running = startCommand([process.execPath, '--preload', COLLECTING, '-e', script]);
    const before = Number((await running.line(/^before/)).slice('before '.length));
    await heldBy(running.process.pid, '/nowhere', { restMs: 400, givingBackMs: 0 });
    running.process.stdin.write('x');
    running.process.stdin.flush();
    const after = Number((await running.line(/^after/)).slice('after '.length));
    await running.stop();
    expect(before).toBeGreaterThan(3_000);
    expect(after).toBeLessThan(before / 10);
  });
});

describe('the judge of answers finds', () => {
  const { judge, addressed } = openAnswers(document, operations);
  const operation = operations.find(({ id }) => id === 'get-health');
  if (!operation) throw new Error('the document has no get-health');
  const asked: Asked = {
    operation,
    intent: 'right',
    method: 'GET',
    target: operation.path,
    headers: {},
    body: undefined,
    said: undefined,
    mark: 'mabcdefghijk',
    secrets: ['of nobody else'],
  };
  const right: OperationResponse = {
    status: 200,
    headers: new Headers({
      'X-Request-Id': 'a',
      'Cache-Control': 'no-store',
      'Content-Type': 'application/json',
    }),
    text: '{"status":"ok"}',
    body: { status: 'ok' },
  };
  const refused = (text: string): OperationResponse => ({
    ...right,
    status: 503,
    text,
    body: JSON.parse(text),
  });
  const withHeader = (name: string, value: string) => new Headers([...right.headers, [name, value]]);

  test('nothing where nothing is wrong', async () => {
    expect(await judge(asked, right)).toEqual([]);
    expect(addressed('HEAD', '//healthz//?x')).toBe(operation);
    expect(addressed('PUT', '/healthz')).toBe('method_not_allowed');
    expect(addressed('GET', '/nowhere')).toBe('unknown_route');
  });

  test.each<[string, Partial<OperationResponse>, RegExp]>([
    ['a status that is not documented', { status: 418 }, /418 is not documented/],
    ['a member that is not documented', { body: { status: 'ok', more: 1 } }, /more is not documented/],
    [
      'a body of another type',
      { headers: withHeader('Content-Type', 'text/html') },
      /is not application\/json/,
    ],
    [
      'a header that is not documented',
      { headers: withHeader('Server', 'x') },
      /header server is not documented/,
    ],
    ['a secret that was sent', { text: '{"status":"of nobody else"}' }, /repeats a secret/],
    ['a refusal without its shape', refused('{"errors":[]}'), /has not the documented shape/],
    [
      'a refusal that repeats what was sent',
      refused('{"errors":[{"status":"503","title":"mabcdefghijk","detail":"d"}]}'),
      /repeats mabcdefghijk/,
    ],
  ])('%s', async (_, wrong, complaint) => {
    expect((await judge(asked, { ...right, ...wrong })).join()).toMatch(complaint);
  });
});
