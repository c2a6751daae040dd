import { afterAll, beforeAll, expect, test } from 'bun:test';
import { Fault } from '../../src/domain/fault.ts';
import { installFromNpm, NPM_GENERATORS, runGenerator } from '../generators/generators.ts';
import { type GeneratorTarget, startGeneratorTarget } from '../generators/target.ts';
import { createFixture, freshFolder, startService } from '../support/service.ts';

/** Clients that generators of npm make from `/openapi.json`, unchanged (docs/guides/generated_clients.md). */

let target: GeneratorTarget;
const folder = freshFolder();

beforeAll(async () => {
  await installFromNpm(folder);
  target = await startGeneratorTarget();
}, 300_000);
afterAll(() => target.service.stop());

test.each(NPM_GENERATORS.map((generator) => [generator.name, generator] as const))(
  'a client of %s compiles strictly, looks links up, creates a user and reads a 404',
  async (_, generator) => {
    const { document, variables, expected } = target;
    const result = await runGenerator(generator, { folder, document, variables });
    expect(result).toEqual({ isGenerated: true, isCompiled: true, seen: expected });
  },
);

test('a generated client reads the errors of every status with one type', async () => {
  const { service, document, variables } = target;
  const limited = await startService({ offline: 'true', clientRate: '1/60' });
  const failing = await startService({ offline: 'true' }, (engine) => {
    const get: typeof engine.records.get = () => Promise.reject(new Fault('unavailable'));
    return { ...engine, records: { ...engine.records, get } };
  });
  try {
    const { realm, oidcProfile, user, ...link } = await createFixture(service.db);
    const { subject } = await createFixture(service.db, { realm, oidcProfile, user });
    const [generator] = NPM_GENERATORS.filter(({ name }) => name === '@hey-api/openapi-ts');
    const result = await runGenerator(
      { ...(generator as NonNullable<typeof generator>), program: ['hey_api_errors.ts', 'program.ts'] },
      {
        folder,
        document,
        variables: {
          ...{ BASE_URL: service.url, REALM: realm, USER: user, OIDC_LINK: link.oidcLink },
          ...{ TAKEN_SUBJECT: subject, WRONG_TOKEN: `${variables.TOKEN}x` },
          TOKEN: await service.token('users:write oidc-profile-infos:read oidc-profile-infos:write'),
          READER_TOKEN: await service.token('users:read'),
          ...{ LIMITED_URL: limited.url, LIMITED_TOKEN: await limited.token('oidc-profile-infos:read') },
          ...{ FAILING_URL: failing.url, FAILING_TOKEN: await failing.token('oidc-profile-infos:read') },
        },
      },
    );
    expect(result.error).toBeUndefined();
    expect(result.seen as unknown).toEqual([
      [400, '400', 'Bad Request', '/data/name'],
      [401, '401', 'Unauthorized', null],
      [403, '403', 'Forbidden', null],
      [404, '404', 'Not Found', null],
      [412, '412', 'Precondition Failed', null],
      [422, '422', 'Unprocessable Entity', expect.any(String)],
      [429, '429', 'Too Many Requests', null],
      [503, '503', 'Service Unavailable', null],
    ]);
  } finally {
    await limited.stop();
    await failing.stop();
  }
});
