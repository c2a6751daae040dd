import { afterAll, describe, expect, test } from 'bun:test';
import { feedCursor } from '../../src/deliver/feed/cursor.ts';
import { Fault } from '../../src/model/fault.ts';
import type { Revision } from '../../src/model/id.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { installFromNpm, NPM_GENERATORS, runGenerator } from '../generators/generators.ts';
import { startGeneratorTarget } from '../generators/target.ts';
import { createFixture, freshFolder, startService } from '../support/service.ts';
import { createStorefront } from '../support/settings_realms.ts';

/** Clients that generators of npm make from `/openapi.json`, unchanged (docs/client.md#in-other-languages). */

const folder = freshFolder();

await installFromNpm(folder);
const target = await startGeneratorTarget();

test.each(NPM_GENERATORS.map((generator) => [generator.name, generator] as const))(
  'a client of %s compiles strictly, looks links up, creates a user and reads a 404',
  async (_, generator) => {
    const { document, variables, expected } = target;
    const result = await runGenerator(generator, { folder, document, variables });
    expect(result).toEqual({ isGenerated: true, isCompiled: true, seen: expected });
  },
);

/** The statuses that a request of a generated client can have, with the first error. */
const ERRORS = [
  [409, '409', 'Conflict', null],
  [400, '400', 'Bad Request', '/data/name'],
  [400, '400', 'Bad Request', 'filter'],
  [401, '401', 'Unauthorized', null],
  [403, '403', 'Forbidden', null],
  [404, '404', 'Not Found', null],
  [410, '410', 'Gone', 'after'],
  [412, '412', 'Precondition Failed', null],
  [413, '413', 'Content Too Large', null],
  [422, '422', 'Unprocessable Entity', expect.any(String)],
  [429, '429', 'Too Many Requests', null],
  [500, '500', 'Internal Server Error', null],
  [503, '503', 'Service Unavailable', null],
];

describe('a service that refuses requests', async () => {
  const broken = systemClock.mintId();
  const failing = systemClock.mintId();
  const SCOPE = 'users:read users:write oidc-profile-infos:read oidc-profile-infos:write changes:read';

  const service = await startService({ offline: 'true' }, (engine) => {
    const { records } = engine;
    const get: typeof records.get = (resource, key) => {
      if (key.includes(broken)) throw new Error('not expected');
      if (key.includes(failing)) throw new Fault('unavailable');
      return records.get(resource, key);
    };
    const commit: typeof records.commit = async (writes, ...more) => {
      if (writes.some((write) => 'record' in write && write.record.name === 'Slow')) await Bun.sleep(500);
      return records.commit(writes, ...more);
    };
    return { ...engine, records: { ...records, get, commit } };
  });
  const { realm, oidcProfile, user, oidcLink } = await createFixture(service.db);
  const { subject } = await createFixture(service.db, { realm, oidcProfile, user });
  const token = await service.token(SCOPE);
  const { clientId } = await createStorefront(service, realm, { requests: 1, seconds: 3_600 });
  // The request for the token is the one that the rate permits.
  const granted = await service.requestToken({ grant_type: 'implicit', client_id: clientId });
  const { access_token: limitedToken } = (await granted.json()) as { access_token: string };
  const missing = { realm, seq: 2, revision: 'ffffffffffffffff' as Revision };
  const variables = {
    ...{ BASE_URL: service.url, REALM: realm, USER: user, OIDC_LINK: oidcLink, TAKEN_SUBJECT: subject },
    ...{ TOKEN: token, WRONG_TOKEN: `${token}x`, READER_TOKEN: await service.token('users:read') },
    ...{ LIMITED_TOKEN: limitedToken, BROKEN_LINK: broken, FAILING_LINK: failing },
    EXPIRED_CURSOR: feedCursor('after', missing),
  };
  afterAll(async () => {
    // It answered 500 on purpose.
    await expect(service.stop()).rejects.toThrow('answered 500');
  });

  test.each(NPM_GENERATORS.map((generator) => [generator.name, generator] as const))(
    'a client of %s reads the errors of every status with one type',
    async (_, generator) => {
      const [program] = generator.program;
      const result = await runGenerator(
        { ...generator, program: [program.replace('.ts', '_errors.ts'), 'program.ts'] },
        { folder, document: await (await service.get('/openapi.json')).text(), variables },
      );
      expect(result.error).toBeUndefined();
      expect(result.seen as unknown).toEqual(ERRORS);
    },
  );
});
