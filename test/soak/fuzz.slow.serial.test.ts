import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Uuid } from '../../src/model/id.ts';
import { freshDatabase } from '../support/database.ts';
import type { JsonObject } from '../support/json_schema.ts';
import { type OperationResponse, operationsOf } from '../support/openapi_client.ts';
import { startCommand } from '../support/processes.ts';
import { freshSeed } from '../support/random.ts';
import { startService } from '../support/service.ts';
import { startServiceProcess } from '../support/service_process.ts';
import { createAccountMember } from '../support/sign_in.ts';
import { fuzzConnections, SOCKET_SCOPE } from './fuzz/connection_fuzzer.ts';
import type { FuzzRequest } from './fuzz/fuzz_request.ts';
import {
  GC_ON_SIGNAL,
  type Growth,
  growthsOf,
  type MemoryCurve,
  memoryAtRest,
  minutesOf,
  type Sample,
  watchMemory,
  workerGrowth,
} from './fuzz/memory.ts';
import { fuzzOperations } from './fuzz/operation_fuzzer.ts';
import { PROPERTIES } from './fuzz/parser_properties.ts';
import { openFuzzResponseCheck } from './fuzz/response_check.ts';
import { tokenProperty } from './fuzz/token_property.ts';

/** A short run of `test/soak/fuzz.ts`, and the errors that its checks find. */

setDefaultTimeout(300_000);

const seed = freshSeed();
const service = await startService({
  offline: 'true',
  badTokenRate: 'off',
  grantRate: 'off',
  requestLogging: 'full',
});
const document = (await (await service.get('/openapi.json')).json()) as JsonObject;
const operations = operationsOf(document);

test('responses to fuzzed requests match the OpenAPI document', async () => {
  const credentials = (scope: string, realms?: readonly string[]) =>
    service.client(scope, realms === undefined ? '*' : new Set(realms as readonly Uuid[]));
  const target = { url: service.url, credentials, signIn: await createAccountMember(service.db) };
  const answered = () => service.log.filter(({ event }) => event === 'request').length;
  const counts: number[] = [];
  const pause = {
    afterMs: 1_000,
    async action() {
      counts.push(answered());
      await Bun.sleep(300);
      counts.push(answered());
    },
  };
  const report = await fuzzOperations(target, {
    seed,
    requests: 1_200,
    millisecondsMax: 45_000,
    concurrency: 8,
    pause,
  });
  expect({ seed, complaints: report.complaints }).toEqual({ seed, complaints: [] });
  const [before = 0, after] = counts;
  expect({ seed, after, times: counts.length }).toEqual({ seed, after: before, times: 2 });
  expect(answered()).toBeGreaterThan(before);
  // A busy machine sends fewer.
  expect(report.sent).toBeGreaterThan(300);
  // The others refer to records that another request has deleted.
  expect(report.valid.succeeded).toBeGreaterThan(report.valid.sent * 0.85);
  expect(report.readBack).toBeGreaterThan(report.sent * 0.01);
  const statuses = new Set([...report.statuses.keys()].map((name) => name.split(' ')[1]));
  for (const status of ['200', '201', '204', '400', '401', '404', '405']) expect(statuses).toContain(status);
});

test('malformed and slow connections leave the service fast and without leaked descriptors', async () => {
  const database = await freshDatabase();
  const served = await startServiceProcess({ database, scope: SOCKET_SCOPE, flags: ['--offline'] });
  const plan = { seed, connections: 150, concurrency: 16, slow: 20, slowMs: 1_000, slowerMsMax: 250 };
  const { complaints, kinds } = await fuzzConnections(served, plan);
  expect({ seed, complaints }).toEqual({ seed, complaints: [] });
  expect(kinds.size).toBe(8);
  expect(await served.running.stop()).toBe(0);
});

describe('for any input,', () => {
  test.each(PROPERTIES.map(({ name, check }) => [name, check] as const))('%s', async (_, check) => {
    await check(300, seed | 0);
  });

  test('a token is accepted or rejected, never a 500', async () => {
    const { check } = await tokenProperty(service);
    await check(300, seed | 0);
  });
});

describe('the memory check', () => {
  const usage = (processes: number, anonymousMb: number, residentMb: number) => ({
    ...{ processes, anonymousMb, residentMb },
    descriptors: 9 * processes,
  });
  /** A sample with this much anonymous memory, and mapped database pages that grow with time. */
  function sampleOf(second: number, mb: number, workerMb = 25): Sample {
    const databaseMb = second / 20;
    const own = usage(1, mb, mb + 50 + databaseMb);
    return { second, own, databaseMb, workers: usage(2, 2 * workerMb, 100) };
  }
  const curveOf = (seconds: number, workerMb: (second: number) => number): Pick<MemoryCurve, 'samples'> => ({
    samples: Array.from({ length: seconds }, (_, second) => sampleOf(second, 90, workerMb(second))),
  });
  const grown = (growths: readonly Growth[]) =>
    growths.filter(({ share }) => share > 0.1).map(({ measure }) => measure);

  test('the memory check ignores mapped database pages', () => {
    expect(grown(growthsOf(sampleOf(60, 90), sampleOf(600, 95)))).toEqual([]);
  });

  test('the memory check finds growth of the service and of its worker processes', () => {
    const both = ['at rest, resident without the database', 'at rest, anonymous'];
    expect(grown(growthsOf(sampleOf(60, 90), sampleOf(600, 120)))).toEqual(both);
    expect(grown(workerGrowth(curveOf(600, (second) => 25 + second / 60)))).toEqual([
      'anonymous in each worker process',
    ]);
    expect(grown(workerGrowth(curveOf(600, (second) => 25 - Math.min(second, 60) / 60)))).toEqual([]);
    expect(workerGrowth(curveOf(230, () => 25))).toEqual([]);
  });

  test('the memory check prints one line per minute', () => {
    const [first, ...others] = minutesOf(curveOf(600, () => 25));
    expect(first).toBe(
      'minute 1: 140.0 to 142.9 MB resident, 0.0 to 3.0 MB of mapped database, 90.0 to 90.0 MB anonymous, 9 to 9 descriptors, 2 to 2 worker processes, 25.0 to 25.0 MB anonymous in each',
    );
    expect(others).toHaveLength(8);
  });

  test('a paused memory curve takes no sample and counts no time', async () => {
    const curve = watchMemory(process.pid, '/nowhere');
    await curve.pause(() => Bun.sleep(2_500));
    expect(curve.samples).toEqual([]);
    while (curve.samples.length === 0) await Bun.sleep(100);
    curve.stop();
    expect(curve.samples[0]?.second).toBeLessThan(2);
  });

  test('memory at rest excludes garbage of the process', async () => {
    const waits = { collectionMs: 400, releaseMs: 0 };
    const script = `let objects = Array.from({ length: 2e6 }, (_, at) => ({ at })); console.log('made'); process.stdin.once('data', () => { objects = []; console.log('freed'); });`;
    const running = startCommand([process.execPath, '--preload', GC_ON_SIGNAL, '-e', script]);
    await running.line(/^made/);
    const full = await memoryAtRest(running.process.pid, '/nowhere', waits);
    running.process.stdin.write('x');
    running.process.stdin.flush();
    await running.line(/^freed/);
    const empty = await memoryAtRest(running.process.pid, '/nowhere', waits);
    await running.stop();
    expect(full.own.anonymousMb).toBeGreaterThan(2 * empty.own.anonymousMb);
  });

  test('memory at rest excludes compiled code', async () => {
    const script = `
      const { heapStats } = require('bun:jsc');
      const report = (at) => console.log(at, heapStats().objectTypeCounts.FunctionCodeBlock);
      const functions = Array.from({ length: 3_000 }, (_, at) => new Function('return ' + at));
      for (const each of functions) each();
      report('before');
      process.stdin.once('data', () => report('after'));`;
    const running = startCommand([process.execPath, '--preload', GC_ON_SIGNAL, '-e', script]);
    const before = Number((await running.line(/^before/)).slice('before '.length));
    await memoryAtRest(running.process.pid, '/nowhere', { collectionMs: 400, releaseMs: 0 });
    running.process.stdin.write('x');
    running.process.stdin.flush();
    const after = Number((await running.line(/^after/)).slice('after '.length));
    await running.stop();
    expect(before).toBeGreaterThan(3_000);
    expect(after).toBeLessThan(before / 10);
  });
});

describe('the response check', () => {
  const { check, findOperation } = openFuzzResponseCheck(document, operations);
  const operation = operations.find(({ id }) => id === 'get-health');
  if (!operation) throw new Error('the document has no get-health');
  const request: FuzzRequest = {
    operation,
    intent: 'valid',
    method: 'GET',
    target: operation.path,
    headers: {},
    body: undefined,
    json: undefined,
    mark: 'mabcdefghijk',
    secrets: ['correct horse'],
  };
  const valid: OperationResponse = {
    status: 200,
    headers: new Headers({
      'X-Request-Id': 'a',
      'Cache-Control': 'no-store',
      'Content-Type': 'application/json',
    }),
    text: '{"status":"ok"}',
    body: { status: 'ok' },
  };
  const errorResponse = (text: string): OperationResponse => ({
    ...valid,
    status: 503,
    text,
    body: JSON.parse(text),
  });
  const withHeader = (name: string, value: string) => new Headers([...valid.headers, [name, value]]);

  test('the response check accepts a valid response', async () => {
    expect(await check(request, valid)).toEqual([]);
    expect(findOperation('HEAD', '//healthz//?x')).toBe(operation);
    expect(findOperation('PUT', '/healthz')).toBe('method_not_allowed');
    expect(findOperation('GET', '/nowhere')).toBe('unknown_route');
    expect(findOperation('OPTIONS', '/console/..')).toBe('method_not_allowed');
  });

  test.each<[string, Partial<OperationResponse>, RegExp]>([
    ['an undocumented status', { status: 418 }, /418 is not documented/],
    ['an undocumented member', { body: { status: 'ok', more: 1 } }, /more is not documented/],
    [
      'a body of another media type',
      { headers: withHeader('Content-Type', 'text/html') },
      /is not application\/json/,
    ],
    ['an undocumented header', { headers: withHeader('Server', 'x') }, /header server is not documented/],
    ['a secret that was sent', { text: '{"status":"correct horse"}' }, /repeats a secret/],
    ['an error of another shape', errorResponse('{"errors":[]}'), /has not the documented shape/],
    [
      'an error that repeats text of the request',
      errorResponse('{"errors":[{"status":"503","title":"mabcdefghijk","detail":"d","code":"overloaded"}]}'),
      /repeats mabcdefghijk/,
    ],
  ])('the response check finds %s', async (_, change, complaint) => {
    expect((await check(request, { ...valid, ...change })).join()).toMatch(complaint);
  });
});
