import { afterAll, describe, expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { readTraceContext } from '../../src/model/trace_context.ts';
import { testInProcess } from '../support/program_service.ts';
import { FULL_SCOPE } from '../support/resource_cases.ts';
import { createFixture, oidcPath, startService } from '../support/service.ts';

/** W3C Trace Context, level 1: accepted, logged, and propagated to providers. */

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;

const read = (parent: string, state?: string) =>
  readTraceContext(
    new Headers({ traceparent: parent, ...(state === undefined ? {} : { tracestate: state }) }),
  );

describe('traceparent', () => {
  test.each([
    ['sampled', PARENT, true],
    ['not sampled', PARENT.replace(/01$/, '00'), false],
    ['with a flag of a later version', PARENT.replace(/01$/, '03'), true],
    ['of a later version, with more fields', `cc-${PARENT.slice(3)}-what-the-future-brings`, true],
    ['of a later version, with the current fields', `01-${PARENT.slice(3)}`, true],
  ])('traceparent %s is accepted', (_, parent, isSampled) => {
    expect(read(parent)).toEqual({ traceId: TRACE, isSampled, state: undefined });
  });

  test.each([
    ['empty', ''],
    ['in upper case', PARENT.toUpperCase()],
    ['with version ff', `ff-${PARENT.slice(3)}`],
    ['with a version of one digit', PARENT.slice(1)],
    ['with more fields after version 00', `${PARENT}-00`],
    ['with text without a dash after a later version', `cc-${PARENT.slice(3)}.x`],
    ['with a trace ID of zeros', PARENT.replace(TRACE, '0'.repeat(32))],
    ['with a parent ID of zeros', PARENT.replace('b7ad6b7169203331', '0'.repeat(16))],
    ['with a short trace ID', PARENT.replace(TRACE, TRACE.slice(1))],
    ['with a letter that is not hexadecimal', PARENT.replace('0af', '0ag')],
    ['sent twice, joined', `${PARENT}, ${PARENT}`],
    ['without flags', PARENT.slice(0, -3)],
  ])('traceparent %s is ignored', (_, parent) => expect(read(parent, 'a=1')).toBeUndefined());
});

describe('tracestate', () => {
  test.each([
    ['one member', 'congo=t61rcWkgMzE'],
    ['white space and empty members', 'a=1 ,\t,b=2'],
    ['a key twice', 'a=1,b=2,a=3'],
    ['the maximum length', `a=${'v'.repeat(LIMITS.traceStateCharactersMax - 2)}`],
  ])('tracestate with %s is propagated unchanged', (_, state) =>
    expect(read(PARENT, state)?.state).toBe(state),
  );

  test.each([
    ['nothing', ''],
    ['one character too many', `a=${'v'.repeat(LIMITS.traceStateCharactersMax - 1)}`],
    ['a letter that is not ASCII', 'a=\u00e4'],
  ])('tracestate with %s is dropped, the trace is kept', (_, state) => {
    expect(read(PARENT, state)).toEqual({ traceId: TRACE, isSampled: true, state: undefined });
  });
});

describe('trace context in the service', async () => {
  const providerRequests: Headers[] = [];

  const provider = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request): Response {
      providerRequests.push(request.headers);
      return Response.json({ issuer: `http://127.0.0.1:${provider.port}` });
    },
  });
  const service = await startService({ requestLogging: 'full', allowPrivate: 'localhost 127.0.0.0/8' });
  const fixture = await createFixture(service.db);
  const token = await service.token(FULL_SCOPE);
  afterAll(async () => {
    provider.stop(true);
  });

  testInProcess('the trace ID is in the log lines of a request and of its fault', async () => {
    const headers = { traceparent: PARENT };
    expect((await service.get(oidcPath(fixture), token, headers)).status).toBe(200);
    expect(service.log.at(-1)).toMatchObject({ event: 'request', trace_id: TRACE });
    await service.database.query('alter table oidc_profile_info rename to elsewhere');
    expect((await service.get(oidcPath(fixture), token, headers)).status).toBe(503);
    await service.database.query('alter table elsewhere rename to oidc_profile_info');
    const failed = service.log.slice(-2);
    expect(failed.map(({ event }) => event)).toEqual(['fault', 'request']);
    for (const line of failed) expect(line).toHaveProperty('trace_id', TRACE);
  });

  test('a malformed traceparent is not logged and does not change the response', async () => {
    for (const traceparent of ['none', PARENT.toUpperCase()]) {
      expect((await service.get(oidcPath(fixture), token, { traceparent })).status).toBe(200);
      expect(service.log.at(-1)).not.toHaveProperty('trace_id');
    }
  });

  async function createProfile(headers: Record<string, string>): Promise<Headers> {
    const data = {
      type: 'oidc-profile',
      name: 'Login',
      client_id: 'shop',
      client_secret: 'secret of the shop',
      discovery_url: `http://127.0.0.1:${provider.port}/.well-known/openid-configuration`,
    };
    const path = `/v2/authentication-realms/${fixture.realm}/oidc-profiles`;
    expect((await service.post(path, token, { data }, headers)).status).toBe(201);
    return providerRequests.at(-1) as Headers;
  }

  test('a request to a provider continues the trace with a new parent ID', async () => {
    const sent = await createProfile({ traceparent: PARENT, tracestate: 'congo=t61rcWkgMzE, rojo=1' });
    const [version, trace, parent, flags] = (sent.get('traceparent') ?? '').split('-');
    expect([version, trace, flags]).toEqual(['00', TRACE, '01']);
    expect(parent).toMatch(/^(?!0{16})[0-9a-f]{16}$/);
    expect(PARENT).not.toContain(parent as string);
    expect(sent.get('tracestate')).toBe('congo=t61rcWkgMzE, rojo=1');
  });

  test('a request to a provider is part of no trace if there is no valid traceparent', async () => {
    for (const headers of [{}, { traceparent: 'none', tracestate: 'a=1' }]) {
      const sent = await createProfile(headers as Record<string, string>);
      expect([sent.get('traceparent'), sent.get('tracestate')]).toEqual([null, null]);
    }
  });

  test('a tracestate of the caller cannot set another header of a request to a provider', async () => {
    const sent = await createProfile({ traceparent: PARENT, tracestate: 'a=1,Host=evil' });
    expect(sent.get('tracestate')).toBe('a=1,Host=evil');
    expect(sent.get('host')).toBe(`127.0.0.1:${provider.port}`);
  });
});
