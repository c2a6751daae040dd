import { beforeEach, describe, expect, test } from 'bun:test';
import { openIssuerKeys } from '../../src/access/issuers/issuer_keys.ts';
import { LIMITS } from '../../src/model/limits.ts';
import {
  AUDIENCE,
  claimsOf,
  createKeyPair,
  DISCOVERY,
  type IssuerKeyPair,
  type IssuerServer,
  issue,
  issuerEntry,
  issuersFile,
  json,
  startIssuer,
  startTrustingService,
} from '../support/issuers.ts';
import { createFixture, type Fixture, LOOKUPS, type Service, startService } from '../support/service.ts';

/** How the keys of external issuers are read: when, how often, and from an issuer that misbehaves. */

const { path } = LOOKUPS[0];
const one = await createKeyPair('one');
const two = await createKeyPair('two');

let acme: IssuerServer;
let service: Service;
let realmFixture: Fixture;

beforeEach(async () => {
  acme = await startIssuer();
  acme.publish(one.publicJwk);
  service = await startTrustingService(issuerEntry(acme));
  realmFixture = await createFixture(service.db);
});

async function statusOf(pair: IssuerKeyPair, more: object = {}): Promise<number> {
  const token = await issue(pair, { ...claimsOf(acme, service), ...more });
  return (await service.get(path(realmFixture), token)).status;
}

const keyReads = () => acme.requestCounts.get('/keys') ?? 0;
const outcomes = () =>
  service.log.flatMap((record) =>
    record.event === 'issuer_keys' ? [`${record.issuer} ${record.outcome}`] : [],
  );

test('issuer keys are read once for concurrent tokens, after the discovery document', async () => {
  expect(await Promise.all([1, 2, 3, 4].map(() => statusOf(one)))).toEqual([200, 200, 200, 200]);
  expect([acme.requestCounts.get(DISCOVERY), keyReads()]).toEqual([1, 1]);
  expect(outcomes()).toEqual(['acme read']);
});

test('fresh issuer keys are not read again for a known key', async () => {
  expect(await statusOf(one)).toBe(200);
  service.clock.advance(LIMITS.issuerKeysFreshMs - 10_000);
  expect([await statusOf(one), await statusOf(one)]).toEqual([200, 200]);
  await Bun.sleep(50);
  expect(keyReads()).toBe(1);
});

describe('to the millisecond', () => {
  /** Keys with a manual clock, of an issuer that answers so many requests. */
  function openKeys(answers = Number.POSITIVE_INFINITY) {
    let at = 0;
    let reads = 0;
    const keys = openIssuerKeys(
      { name: 'staff', issuer: 'https://login.example', jwksUri: 'https://login.example/keys' },
      {
        clock: { monotonic: () => at },
        note: () => undefined,
        fetchDocument: async () => {
          reads += 1;
          if (reads > answers) return { kind: 'unreachable' };
          return { kind: 'document', document: { keys: [{ ...one.publicJwk, kid: `key ${reads}` }] } };
        },
      },
    );
    const find = async (kid: string, moment: number) => {
      at = moment;
      const found = await keys.find(kid);
      await Bun.sleep(0);
      return [typeof found === 'object' ? found.kid : found, reads];
    };
    return { keys, find };
  }

  test('an unknown key causes a read when the pause has ended, not before', async () => {
    const { find } = openKeys();
    expect(await find('key 1', 0)).toEqual(['key 1', 1]);
    expect(await find('key 2', LIMITS.issuerKeysPauseMs - 1)).toEqual([undefined, 1]);
    expect(await find('key 2', LIMITS.issuerKeysPauseMs)).toEqual(['key 2', 2]);
    expect(await find('key 1', LIMITS.issuerKeysPauseMs)).toEqual([undefined, 2]);
  });

  test('stale issuer keys are read again while the cached key is returned', async () => {
    const { find } = openKeys();
    await find('key 1', 0);
    expect(await find('key 1', LIMITS.issuerKeysFreshMs - 1)).toEqual(['key 1', 1]);
    expect(await find('key 1', LIMITS.issuerKeysFreshMs)).toEqual(['key 1', 2]);
    expect(await find('key 1', LIMITS.issuerKeysFreshMs + 1)).toEqual([undefined, 2]);
  });

  test('a key of an unreachable issuer is accepted until its age reaches the limit', async () => {
    const { keys, find } = openKeys(1);
    expect(await find('key 1', 0)).toEqual(['key 1', 1]);
    expect(await find('key 1', LIMITS.issuerKeysAgeMsMax - 1)).toEqual(['key 1', 2]);
    const known = await keys.find('key 1');
    if (typeof known !== 'object') throw new Error(`the key is ${known}`);
    expect(keys.holds(known)).toBe(true);
    expect(await find('key 1', LIMITS.issuerKeysAgeMsMax)).toEqual(['unread', 2]);
    expect(keys.holds(known)).toBe(false);
  });
});

test('a new issuer key is accepted after the pause', async () => {
  expect(await statusOf(one)).toBe(200);
  acme.publish(one.publicJwk, two.publicJwk);
  expect([await statusOf(two), keyReads()]).toEqual([401, 1]);
  service.clock.advance(LIMITS.issuerKeysPauseMs);
  expect([await statusOf(two), keyReads()]).toEqual([200, 2]);
});

test('tokens with unknown keys cause one request to the issuer per pause', async () => {
  for (let round = 0; round < 3; round += 1) {
    const strangers = await Promise.all(
      Array.from({ length: 50 }, (_, place) => statusOf({ ...one, kid: `unknown-${round}-${place}` })),
    );
    expect(new Set(strangers)).toEqual(new Set([401]));
    expect(keyReads()).toBe(round + 1);
    service.clock.advance(LIMITS.issuerKeysPauseMs);
  }
});

test('tokens of a removed issuer key are 401, also if they were verified before', async () => {
  const token = await issue(one, {
    ...claimsOf(acme, service),
    exp: Math.floor(service.clock.now() / 1000) + 3_000,
  });
  const ask = async () => (await service.get(path(realmFixture), token)).status;
  expect(await ask()).toBe(200);
  acme.publish(two.publicJwk);
  service.clock.advance(LIMITS.issuerKeysFreshMs);
  // The first token starts the read and does not wait for it.
  expect(await ask()).toBe(200);
  await until(() => keyReads() === 2);
  service.clock.advance(1_000);
  await until(async () => (await ask()) === 401);
});

test('tokens of an issuer key that is read again stay valid', async () => {
  const exp = Math.floor(service.clock.now() / 1000) + 3_000;
  const token = await issue(one, { ...claimsOf(acme, service), exp });
  const ask = async () => (await service.get(path(realmFixture), token)).status;
  expect(await ask()).toBe(200);
  service.clock.advance(LIMITS.issuerKeysFreshMs);
  expect(await ask()).toBe(200);
  await until(() => keyReads() === 2);
  await Bun.sleep(50);
  service.clock.advance(1_000);
  expect(await ask()).toBe(200);
});

test('of two issuer keys with the same kid the first is used', async () => {
  acme.publish(one.publicJwk, { ...two.publicJwk, kid: 'one' });
  expect([await statusOf(one), await statusOf({ ...two, kid: 'one' })]).toEqual([200, 401]);
});

test('tokens of an issuer key that is replaced under the same kid are 401', async () => {
  expect(await statusOf(one)).toBe(200);
  acme.publish({ ...two.publicJwk, kid: 'one' });
  service.clock.advance(LIMITS.issuerKeysFreshMs);
  await statusOf(one);
  await until(async () => (await statusOf(one)) === 401);
  expect([keyReads(), await statusOf({ ...two, kid: 'one' })]).toEqual([2, 200]);
});

test('cached keys of an unreachable issuer are used up to their maximum age', async () => {
  expect(await statusOf(one)).toBe(200);
  acme.routes.clear();
  service.clock.advance(LIMITS.issuerKeysAgeMsMax - 10_000);
  expect(await statusOf(one)).toBe(200);
  await until(() => outcomes().length === 2);
  service.clock.advance(10_000);
  expect(await statusOf(one)).toBe(401);
  expect(outcomes()).toEqual(['acme read', 'acme unreachable']);
  acme.publish(one.publicJwk);
  service.clock.advance(LIMITS.issuerKeysPauseMs);
  expect(await statusOf(one)).toBe(200);
  expect(outcomes().at(-1)).toBe('acme read');
});

describe('the budget of an address', () => {
  const BUDGET = 3;
  const started = () => {
    const flags = { allowPrivate: 'localhost 127.0.0.0/8', badTokenRate: `${BUDGET}/3600` };
    return startService({ ...flags, issuersFile: issuersFile(issuerEntry(acme)) });
  };
  /** The statuses of more tokens than the budget has. */
  async function statuses(of: Service, pair: IssuerKeyPair): Promise<readonly number[]> {
    const recordPath = path(await createFixture(of.db));
    const found: number[] = [];
    for (let count = 0; count <= BUDGET; count += 1) {
      found.push((await of.get(recordPath, await issue(pair, claimsOf(acme, of)))).status);
    }
    return found;
  }

  test('tokens that cannot be checked do not count against the budget of an address, invalid ones do', async () => {
    const consumer = await started();
    acme.routes.clear();
    expect(await statuses(consumer, one)).toEqual(Array(BUDGET + 1).fill(401));
    acme.publish(one.publicJwk);
    consumer.clock.advance(LIMITS.issuerKeysPauseMs);
    expect(await statuses(consumer, one)).toEqual(Array(BUDGET + 1).fill(200));
    // An unknown key, then a wrong signature.
    expect(await statuses(consumer, two)).toEqual([...Array(BUDGET).fill(401), 429]);
    consumer.clock.advance(3_600_000);
    expect(await statuses(consumer, { ...two, kid: 'one' })).toEqual([...Array(BUDGET).fill(401), 429]);
    await consumer.stop();
    const refused = await consumer.database.query<{ detail: string }>(
      "select detail from act where action = 'access.refused'",
    );
    const reasons = refused.map(({ detail }) => JSON.parse(detail).reason);
    expect([...new Set(reasons)].sort()).toEqual(['bad token', 'token not checked']);
  });
});

describe('an issuer that misbehaves', () => {
  const silent = () => undefined;
  const endless = (
    _: unknown,
    response: { write(text: string): void; on(event: string, end: () => void): void },
  ) => {
    response.write('{"keys":[');
    const timer = setInterval(() => response.write(' '.repeat(65_536)), 1);
    response.on('close', () => clearInterval(timer));
  };
  const many = Array.from({ length: LIMITS.issuerKeysMax + 1 }, (_, place) => ({
    ...one.publicJwk,
    kid: `${place}`,
  }));

  test.each([
    [
      'keys that are not JSON',
      () => acme.routes.set('/keys', (_, response) => response.end('keys')),
      'not_json',
    ],
    ['keys that are not a set', () => acme.routes.set('/keys', json({ keys: 'one' })), 'no_key_set'],
    ['more keys than the limit', () => acme.publish(...many), 'no_key_set'],
    ['an endless response', () => acme.routes.set('/keys', endless as never), 'unreachable'],
    [
      'a redirect',
      () => acme.routes.set('/keys', (_, response) => response.writeHead(302, { Location: '/other' }).end()),
      'redirect',
    ],
    [
      'another issuer in its discovery document',
      () => acme.routes.set(DISCOVERY, json({ issuer: `${acme.issuer}/`, jwks_uri: `${acme.issuer}/keys` })),
      'issuer_differs',
    ],
    [
      'a discovery document that is not JSON',
      () => acme.routes.set(DISCOVERY, (_, response) => response.end('none')),
      'not_json',
    ],
    ['no discovery document', () => acme.routes.delete(DISCOVERY), 'unreachable'],
    ['no jwks_uri', () => acme.routes.set(DISCOVERY, json({ issuer: acme.issuer })), 'no_key_set'],
    [
      'a private jwks_uri',
      () => acme.routes.set(DISCOVERY, json({ issuer: acme.issuer, jwks_uri: 'http://10.0.0.1/keys' })),
      'forbidden',
    ],
    [
      'a jwks_uri on another allowed private host',
      () => {
        const jwks_uri = `${acme.issuer.replace('127.0.0.1', 'localhost')}/keys`;
        acme.routes.set(DISCOVERY, json({ issuer: acme.issuer, jwks_uri }));
      },
      'forbidden',
    ],
  ] as const)('tokens of an issuer with %s are 401', async (_what, misbehave, outcome) => {
    misbehave();
    expect([await statusOf(one), await statusOf({ ...one, kid: '0' })]).toEqual([401, 401]);
    expect(outcomes()).toEqual([`acme ${outcome}`]);
  });

  test('a key set of exactly the maximum size is read', async () => {
    acme.publish(...many.slice(1), one.publicJwk);
    expect(await statusOf(one)).toBe(401);
    service.clock.advance(LIMITS.issuerKeysPauseMs);
    acme.publish(...many.slice(2), one.publicJwk);
    expect(await statusOf(one)).toBe(200);
  });

  test('keys of a set that are not for verification are ignored', async () => {
    const { kid } = one;
    acme.publish(
      { ...one.publicJwk, use: 'enc' },
      { ...one.publicJwk, key_ops: ['encrypt'] },
      { ...one.publicJwk, kid: 1 },
      { kty: 'oct', kid, k: 'AAAA' },
      null as never,
      'one' as never,
      { ...two.publicJwk, key_ops: ['verify'] },
    );
    expect([await statusOf(one), await statusOf(two)]).toEqual([401, 200]);
  });

  test('a changing key set invalidates only tokens of removed keys', async () => {
    const token = await service.token('oidc-profile-infos:read');
    acme.routes.set('/keys', (request, response) =>
      json({ keys: [keyReads() % 2 === 1 ? one.publicJwk : two.publicJwk] })(request, response),
    );
    const seen: number[][] = [];
    for (let round = 0; round < 4; round += 1) {
      seen.push([
        await statusOf(round % 2 === 0 ? one : two),
        (await service.get(path(realmFixture), token)).status,
      ]);
      service.clock.advance(LIMITS.issuerKeysPauseMs);
    }
    expect(seen).toEqual([
      [200, 200],
      [200, 200],
      [200, 200],
      [200, 200],
    ]);
    expect(keyReads()).toBe(4);
  });

  test('a silent issuer delays a bounded number of its own tokens, and no others', async () => {
    acme.routes.set('/keys', silent);
    const own = await service.token('oidc-profile-infos:read');
    const start = performance.now();
    const waiting = Array.from({ length: LIMITS.issuerWaitersMax }, () => statusOf(one));
    await until(() => keyReads() === 1);
    // Beyond the maximum of waiting lookups, a token is answered at once.
    for (let immediate: unknown; immediate !== 401; ) {
      const more = statusOf(one);
      immediate = await Promise.race([more, Bun.sleep(200)]);
      if (immediate === undefined) waiting.push(more);
    }
    expect((await service.get(path(realmFixture), own)).status).toBe(200);
    expect(performance.now() - start).toBeLessThan(LIMITS.issuerKeysWaitMsMax);
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([401]));
    const took = performance.now() - start;
    // Beyond `answerMsMax` the answers would be 503.
    expect(took).toBeGreaterThan(LIMITS.issuerKeysWaitMsMax - 100);
  }, 300_000);
});

describe('two issuers', () => {
  test('a silent issuer does not affect another issuer', async () => {
    const silent = await startIssuer();
    silent.routes.set(DISCOVERY, () => undefined);
    const consumer = await startTrustingService(issuerEntry(silent, { name: 'silent' }), issuerEntry(acme));
    const fixture = await createFixture(consumer.db);
    const claims = { ...claimsOf(silent, consumer) };
    const delayed = consumer.get(path(fixture), await issue(one, claims));
    const answer = await consumer.get(path(fixture), await issue(one, { ...claims, iss: acme.issuer }));
    expect([answer.status, Bun.peek.status(delayed)]).toEqual([200, 'pending']);
    expect((await delayed).status).toBe(401);
  }, 300_000);

  test('with a configured jwks_uri the discovery document is not read', async () => {
    acme.routes.delete(DISCOVERY);
    const consumer = await startTrustingService(
      issuerEntry(acme, { jwks_uri: `${acme.issuer}/keys`, audience: AUDIENCE }),
    );
    const fixture = await createFixture(consumer.db);
    const token = await issue(one, claimsOf(acme, consumer));
    expect((await consumer.get(path(fixture), token)).status).toBe(200);
  });
});

async function until(isDone: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isDone())) await Bun.sleep(5);
}
