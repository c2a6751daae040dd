import { describe, expect, test } from 'bun:test';
import type { Route } from '../../../src/http/server/router.ts';
import { type Server, type ServerSettings, startServer } from '../../../src/http/server/server.ts';
import { FAULTS, Fault, type FaultCode, TITLES } from '../../../src/model/fault.ts';
import type { LogRecord } from '../../../src/ops/process/log.ts';

const SETTINGS: ServerSettings = {
  host: '127.0.0.1',
  port: 0,
  tls: undefined,
  isShared: false,
  trustedProxies: [],
  corsOrigins: [],
  requestLogging: 'off',
};
const SECRET = 'a-secret-for-no-caller-and-no-log';

/** A server with one failing path for each fault and each kind of unexpected error. */
async function startFailingServer(log: LogRecord[]): Promise<Server> {
  const at = (path: string, error: () => unknown): Route[] => [
    { pattern: `/now/${path}`, answers: { GET: () => fail(error()) } },
    { pattern: `/later/${path}`, answers: { GET: () => Promise.reject(error()) } },
  ];
  const codes = Object.keys(FAULTS) as FaultCode[];
  const routes = [
    ...codes.flatMap((code) =>
      at(code, () => new Fault(code, [{ field: 'subject', rule: 'unique' }], new Error(SECRET))),
    ),
    ...at('bug', () => Object.assign(new TypeError(SECRET), { path: SECRET })),
    ...at('text', () => SECRET),
    ...at('nothing', () => undefined),
  ];
  return startServer(SETTINGS, { write: (record) => log.push(record) }, async () => routes);
}

function fail(error: unknown): never {
  throw error;
}

/** Faults whose error names a field of the body or a parameter. */
const WITH_SOURCE: Partial<Record<FaultCode, object>> = {
  malformed: { detail: 'subject: unique', source: { pointer: '/subject' } },
  invalid: { detail: 'subject: unique', source: { pointer: '/subject' } },
  conflict: { detail: 'subject: unique', source: { pointer: '/subject' } },
  not_found: { detail: 'subject: unique', source: { pointer: '/subject' } },
  precondition_failed: { detail: 'subject: unique', source: { pointer: '/subject' } },
  invalid_query: { detail: 'subject: unique', source: { parameter: 'subject' } },
  malformed_filter: {
    detail: 'Could not parse the supplied filter: unique',
    source: { parameter: 'subject' },
  },
};

/** Members of the body in addition to `errors`. */
const ADDITIONAL: Partial<Record<FaultCode, object>> = { not_ready: { dependencies: { subject: 'unique' } } };

describe('every fault', () => {
  const rows = [
    ...(Object.keys(FAULTS) as FaultCode[]).map((code) => [code, code] as const),
    ...['bug', 'text', 'nothing'].map((path) => [path, 'internal'] as const),
  ];
  test.each(rows)(
    'the error %s is answered with the code and the texts of its row in the table of faults, and logged without its cause',
    async (path, code) => {
      const log: LogRecord[] = [];
      const server = await startFailingServer(log);
      const { status, detail } = FAULTS[code];
      const title = TITLES[status];
      for (const when of ['now', 'later']) {
        const answer = await fetch(`${server.url}/${when}/${path}`);
        expect(answer.status).toBe(status);
        expect(await answer.json()).toEqual({
          errors: [{ status: String(status), title, detail, code, ...WITH_SOURCE[code] }],
          ...ADDITIONAL[code],
        });
        expect(answer.headers.get('content-type')).toBe('application/json');
        expect(answer.headers.get('cache-control')).toBe('no-store');
        expect(answer.headers.get('retry-after')).toBe(
          status === 503 || code === 'idempotency_key_in_use' ? '1' : null,
        );
        expect(JSON.stringify([...answer.headers])).not.toContain(SECRET);
      }
      expect(JSON.stringify(log)).not.toContain(SECRET);
      expect(log.flatMap((record) => (record.event === 'fault' ? [record.code] : []))).toEqual(
        status >= 500 ? [code, code] : [],
      );
      await server.stop();
    },
  );
});

test('only an unexpected error is logged with stack frames', async () => {
  const log: LogRecord[] = [];
  const server = await startFailingServer(log);
  for (const path of ['unavailable', 'bug']) await (await fetch(`${server.url}/now/${path}`)).text();
  await server.stop();
  expect(log.map((record) => record.event === 'fault' && [record.code, record.frames])).toEqual([
    ['unavailable', undefined],
    ['internal', expect.arrayContaining([expect.stringContaining('at ')])],
  ]);
});

test('the table of faults has short, fixed sentences', () => {
  for (const { status, detail } of Object.values(FAULTS)) {
    expect(status).toBeWithin(400, 600);
    expect(TITLES[status]).toMatch(/^[A-Z][A-Za-z ]+$/);
    expect(detail).toMatch(/^[\w ;,/.-]{1,80}$/);
  }
});
