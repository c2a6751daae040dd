import { expect, test } from 'bun:test';
import { Fault } from '../../../src/model/fault.ts';
import type { LogRecord } from '../../../src/ops/process/log.ts';
import type { Engine } from '../../../src/ops/store/open.ts';
import { bytesOf, realmLines } from '../../support/import_fixtures.ts';
import { errorsOf, startService } from '../../support/service.ts';

/** Imports and exports over HTTP that an error of the database ends. */

const IMPORT = '/admin/v1/import';
const EXPORT = '/admin/v1/export';
const lines = () => Buffer.from(bytesOf([realmLines().lines.realm]));
const fail = () =>
  Promise.reject(new Fault('unavailable', [], Object.assign(new Error('of a test'), { code: 'DISK_GONE' })));

/** A service whose records fail. */
async function startFailing(records: (of: Engine['records']) => Partial<Engine['records']>) {
  const service = await startService({}, (engine) => ({
    ...engine,
    records: { ...engine.records, ...records(engine.records) },
  }));
  return { service, token: await service.token('transfer') };
}

const logged = (route: string, cause: string): LogRecord => ({
  ...{ event: 'fault', route, code: 'unavailable', cause, count: 1 },
  request_id: expect.any(String),
});

test('a dry run over HTTP without a folder for its temporary files is 503 that names TMPDIR and no path, and the log has the cause', async () => {
  const service = await startService();
  const { TMPDIR } = process.env;
  process.env.TMPDIR = '/nowhere/of a test';
  const sent = service.post(`${IMPORT}?dry_run=true`, await service.token('transfer'), lines());
  const answer = await sent.finally(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  });
  const [error] = await errorsOf(answer);
  expect([answer.status, error?.detail]).toEqual([503, expect.stringMatching(/set TMPDIR of the service/)]);
  expect(JSON.stringify(error)).not.toContain('/nowhere');
  expect(service.log).toContainEqual(logged(IMPORT, 'ENOENT'));
});

test('the error of the database that ends an import over HTTP is in the log with its cause', async () => {
  const { service, token } = await startFailing(() => ({ load: fail }));
  const answer = await service.post(IMPORT, token, lines());
  expect([answer.status, (await errorsOf(answer))[0]?.detail]).toEqual([
    503,
    expect.stringMatching(/; try again: line 1 is the first that was not imported$/),
  ]);
  expect(service.log).toContainEqual(logged(IMPORT, 'DISK_GONE'));
});

test('the error of the database that ends an export over HTTP that has begun is in the log with its cause', async () => {
  const { service, token } = await startFailing(({ openSnapshot }) => ({
    openSnapshot: async () => ({ ...(await openSnapshot()), scan: fail }),
  }));
  const exported = service.get(EXPORT, token).then((answer) => answer.text());
  await expect(exported).rejects.toThrow('closed');
  expect(service.log).toContainEqual(logged(EXPORT, 'DISK_GONE'));
});
