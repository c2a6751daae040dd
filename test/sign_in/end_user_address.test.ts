import { describe, expect, test } from 'bun:test';
import { readEndUserAddress } from '../../src/http/operations/password_request.ts';
import { parseNetwork } from '../../src/model/ip_address.ts';
import { startAdminApi } from '../http/admin/admin_api.ts';
import { runDoctorOn } from '../support/doctor_report.ts';
import { runAuthrealm } from '../support/processes.ts';

/** The scope `sign-in`: docs/guides/clients-and-tokens.md#clients-that-sign-in-end-users. */

const api = await startAdminApi();

interface Answer {
  readonly status: number;
  readonly body: {
    readonly data: {
      readonly id: string;
      readonly client_secret: string;
      readonly end_user_address: unknown;
    };
    readonly errors?: readonly { readonly detail: string }[];
  };
}

const create = (data: object) =>
  api.request('POST', '/clients', {
    data: { name: 'shop', realms: '*', ...data },
  }) as Promise<unknown> as Promise<Answer>;
const change = (id: string, data: object) =>
  api.request('PUT', `/clients/${id}`, { data }) as Promise<unknown> as Promise<Answer>;
const principalOf = async ({ id, client_secret: secret }: Answer['body']['data']) => {
  api.service.clock.advance(1_000);
  const token = await api.service.grant({ clientId: id, secret });
  return (await api.service.get('/v2/authentication-realms', token)).status;
};

const NEEDED =
  'data.end_user_address: the scope sign-in needs it: header, or none for a client that cannot report the address of the end user';

describe('a client with the scope sign-in', () => {
  test('says whether it reports the addresses of end users', async () => {
    for (const data of [{}, { end_user_address: null }]) {
      const { status, body } = await create({ scopes: ['sign-in'], ...data });
      expect([status, body.errors?.[0]?.detail]).toEqual([422, NEEDED]);
    }
    expect((await create({ scopes: ['sign-in'], end_user_address: 'maybe' })).status).toBe(400);
    for (const given of ['header', 'none']) {
      const { status, body } = await create({ scopes: ['sign-in', 'realms:read'], end_user_address: given });
      expect([status, body.data.end_user_address]).toEqual([201, given]);
      expect(await principalOf(body.data)).toBe(200);
      expect(await api.service.db.engine.access.client(body.data.id)).toMatchObject({
        endUserAddress: given,
      });
    }
  });

  test('keeps what it says, can change it, and cannot take it back', async () => {
    const { id } = (await create({ scopes: ['sign-in'], end_user_address: 'header' })).body.data;
    const changed = await change(id, { end_user_address: 'none' });
    expect([changed.status, changed.body.data.end_user_address]).toEqual([200, 'none']);
    expect((await change(id, { name: 'another' })).body.data.end_user_address).toBe('none');
    expect((await change(id, { end_user_address: null })).status).toBe(422);
    expect((await change(id, { scopes: ['users:read'], end_user_address: null })).status).toBe(200);
    expect((await change(id, { scopes: ['sign-in'] })).status).toBe(422);
  });

  test('is in the log with it, and a change in the database makes the row a forged one', async () => {
    const { id } = (await create({ scopes: ['sign-in'], end_user_address: 'header' })).body.data;
    expect(JSON.stringify(await api.auditEntriesOf(id))).toContain('"end_user_address":"header"');
    const { access } = api.service.db.engine;
    for (const value of [`'none'`, 'null']) {
      await api.service.database.query(
        `update client set end_user_address = ${value} where client_id = '${id}'`,
      );
      expect([value, (await access.client(id))?.isForged]).toEqual([value, true]);
    }
    await api.service.database.query(
      `update client set end_user_address = 'header' where client_id = '${id}'`,
    );
    expect((await access.client(id))?.isForged).toBeUndefined();
  });

  test('is created and changed on the command line', async () => {
    const run = async (...args: string[]) =>
      runAuthrealm(['client', ...args, '--json', ...api.service.database.args]);
    const create = (...args: string[]) => run('create', '--name', 'shop', '--scope', 'sign-in', ...args);
    const made = JSON.parse((await create('--end-user-address', 'header')).stdout);
    expect(made).toMatchObject({ scope: 'sign-in', end_user_address: 'header' });
    const updated = JSON.parse((await run('update', made.client_id, '--end-user-address', 'none')).stdout);
    expect(updated).toMatchObject({ end_user_address: 'none' });
    const missing = await create();
    expect([missing.code, missing.stderr]).toEqual([
      1,
      expect.stringContaining('the scope sign-in needs it'),
    ]);
    const wrong = await create('--end-user-address', 'maybe');
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringContaining('Allowed choices are header, none'),
    ]);
  }, 300_000);

  test('is named by doctor if it reports no addresses', async () => {
    const made = await Promise.all(
      ['header', 'none'].map((given) => create({ scopes: ['sign-in'], end_user_address: given })),
    );
    const [reported = '', none = ''] = made.map(({ body }) => body.data.id);
    const { report, healthy } = await runDoctorOn(api.service.database);
    const named = report('clients').notes.filter(({ says }) => says.includes('without their addresses'));
    const ids = named.flatMap((note) => note.ids ?? []);
    expect([ids.includes(none), ids.includes(reported), healthy]).toEqual([true, false, true]);
  });
});

test('by the ID of a client alone a closed connection, which has no address, is not one of the storefront', () => {
  const call = {
    principal: { implicit: { storefronts: [parseNetwork('203.0.113.0/24')] } },
    address: () => undefined,
  };
  expect(() => readEndUserAddress(call as never)).toThrow('invalid_query');
});
