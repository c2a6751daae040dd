import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { openIssuerKeys } from '../../src/auth/issuers/issuer_keys.ts';
import { LIMITS } from '../../src/domain/limits.ts';
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

/** How the keys of external issuers are read: when, how often, and what becomes of it when the issuer does its worst. */

const { path } = LOOKUPS[0];
const one = await createKeyPair('one');
const two = await createKeyPair('two');

let acme: IssuerServer;
let service: Service;
let planted: Fixture;

beforeEach(async () => {
  acme = await startIssuer();
  acme.publish(one.publicJwk);
  service = await startTrustingService(issuerEntry(acme));
  planted = await createFixture(service.db);
});
afterEach(async () => {
  await service.stop();
  acme.stop();
});

async function statusOf(pair: IssuerKeyPair, more: object = {}): Promise<number> {
  const token = await issue(pair, { ...claimsOf(acme, service), ...more });
  return (await service.get(path(planted), token)).status;
}

const readings = () => acme.requestCounts.get('/keys') ?? 0;
const outcomes = () =>
  service.log.flatMap((record) =>
    record.event === 'issuer_keys' ? [`${record.issuer} ${record.outcome}`] : [],
  );

test('they are read once for any number of tokens, and the discovery document before them', async () => {
  expect(await Promise.all([1, 2, 3, 4].map(() => statusOf(one)))).toEqual([200, 200, 200, 200]);
  expect([acme.requestCounts.get(DISCOVERY), readings()]).toEqual([1, 1]);
  expect(outcomes()).toEqual(['acme read']);
});

test('they are not read again for a known key before they are so old', async () => {
  expect(await statusOf(one)).toBe(200);
  service.clock.advance(LIMITS.issuerKeysFreshMs - 1_000);
  expect([await statusOf(one), await statusOf(one)]).toEqual([200, 200]);
  await Bun.sleep(50);
  expect(readings()).toBe(1);
});

describe('to the millisecond', () => {
  /** Keys over a clock that stands still, and an issuer whose name is still being resolved after it was read, if told so. */
  function over(resolving?: Promise<void>) {
    let at = 0;
    let asked = 0;
    const keys = openIssuerKeys(
      { issuer: 'https://login.example', jwksUri: 'https://login.example/keys' },
      {
        clock: { monotonic: () => at },
        note: () => undefined,
        fetchDocument: async (_url, hear) => {
          asked += 1;
          if (resolving) hear(resolving);
          return { kind: 'document', document: { keys: [{ ...one.publicJwk, kid: `key ${asked}` }] } };
        },
      },
    );
    const find = async (kid: string, moment: number) => {
      at = moment;
      const found = await keys.find(kid);
      await Bun.sleep(0);
      return [typeof found === 'object' ? found.kid : found, asked];
    };
    return { keys, find };
  }

  test('an unknown key has them read when the pause is over, not before', async () => {
    const { find } = over();
    expect(await find('key 1', 0)).toEqual(['key 1', 1]);
    expect(await find('key 2', LIMITS.issuerKeysPauseMs - 1)).toEqual([undefined, 1]);
    expect(await find('key 2', LIMITS.issuerKeysPauseMs)).toEqual(['key 2', 2]);
    expect(await find('key 1', LIMITS.issuerKeysPauseMs)).toEqual([undefined, 2]);
  });

  test('they are read again when they are old, and the key at hand is answered', async () => {
    const { find } = over();
    await find('key 1', 0);
    expect(await find('key 1', LIMITS.issuerKeysFreshMs - 1)).toEqual(['key 1', 1]);
    expect(await find('key 1', LIMITS.issuerKeysFreshMs)).toEqual(['key 1', 2]);
    expect(await find('key 1', LIMITS.issuerKeysFreshMs + 1)).toEqual([undefined, 2]);
  });

  test('a name that is still being resolved is not asked again, however long it takes', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { keys, find } = over(promise);
    expect(await find('key 1', 0)).toEqual(['key 1', 1]);
    expect(await find('key 2', LIMITS.issuerKeysAgeMsMax - 1)).toEqual([undefined, 1]);
    const known = await keys.find('key 1');
    if (typeof known !== 'object') throw new Error(`the key is ${known}`);
    expect([known.kid, keys.holds(known)]).toEqual(['key 1', true]);
    expect(await find('key 1', LIMITS.issuerKeysAgeMsMax)).toEqual(['unread', 1]);
    expect(keys.holds(known)).toBe(false);
    resolve();
    await Bun.sleep(0);
    expect(await find('key 2', LIMITS.issuerKeysAgeMsMax)).toEqual(['key 2', 2]);
  });
});

test('a new key is believed as soon as the issuer may be asked again', async () => {
  expect(await statusOf(one)).toBe(200);
  acme.publish(one.publicJwk, two.publicJwk);
  expect([await statusOf(two), readings()]).toEqual([401, 1]);
  service.clock.advance(LIMITS.issuerKeysPauseMs);
  expect([await statusOf(two), readings()]).toEqual([200, 2]);
});

test('however many tokens name unknown keys, the issuer is asked once a pause', async () => {
  for (let round = 0; round < 3; round += 1) {
    const strangers = await Promise.all(
      Array.from({ length: 50 }, (_, place) => statusOf({ ...one, kid: `unknown-${round}-${place}` })),
    );
    expect(new Set(strangers)).toEqual(new Set([401]));
    expect(readings()).toBe(round + 1);
    service.clock.advance(LIMITS.issuerKeysPauseMs);
  }
});

test('a key that the issuer took back ends the tokens it signed, those already known as well', async () => {
  const token = await issue(one, {
    ...claimsOf(acme, service),
    exp: Math.floor(service.clock.now() / 1000) + 3_000,
  });
  const ask = async () => (await service.get(path(planted), token)).status;
  expect(await ask()).toBe(200);
  acme.publish(two.publicJwk);
  service.clock.advance(LIMITS.issuerKeysFreshMs);
  // The first to come has them read again, and is not kept waiting.
  expect(await ask()).toBe(200);
  await until(() => readings() === 2);
  service.clock.advance(1_000);
  expect(await ask()).toBe(401);
});

test('the same key read again leaves its tokens open', async () => {
  const exp = Math.floor(service.clock.now() / 1000) + 3_000;
  const token = await issue(one, { ...claimsOf(acme, service), exp });
  const ask = async () => (await service.get(path(planted), token)).status;
  expect(await ask()).toBe(200);
  service.clock.advance(LIMITS.issuerKeysFreshMs);
  expect(await ask()).toBe(200);
  await until(() => readings() === 2);
  await Bun.sleep(50);
  service.clock.advance(1_000);
  expect(await ask()).toBe(200);
});

test('of two keys of one name the first counts', async () => {
  acme.publish(one.publicJwk, { ...two.publicJwk, kid: 'one' });
  expect([await statusOf(one), await statusOf({ ...two, kid: 'one' })]).toEqual([200, 401]);
});

test('another key under the same name ends them as well', async () => {
  expect(await statusOf(one)).toBe(200);
  acme.publish({ ...two.publicJwk, kid: 'one' });
  service.clock.advance(LIMITS.issuerKeysFreshMs);
  await statusOf(one);
  await until(() => readings() === 2);
  await Bun.sleep(20);
  expect([await statusOf(one), await statusOf({ ...two, kid: 'one' })]).toEqual([401, 200]);
});

test('while the issuer is out of reach what was read counts, and no longer than the limit', async () => {
  expect(await statusOf(one)).toBe(200);
  acme.routes.clear();
  service.clock.advance(LIMITS.issuerKeysAgeMsMax - 1_000);
  expect(await statusOf(one)).toBe(200);
  await until(() => outcomes().length === 2);
  service.clock.advance(1_000);
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
    const flags = { allowLoopbackDiscovery: 'true', badTokenRate: `${BUDGET}/3600` };
    return startService({ ...flags, issuersFile: issuersFile(issuerEntry(acme)) });
  };
  /** The statuses of more tokens than the budget has. */
  async function statuses(of: Service, pair: IssuerKeyPair): Promise<readonly number[]> {
    const there = path(await createFixture(of.db));
    const found: number[] = [];
    for (let count = 0; count <= BUDGET; count += 1) {
      found.push((await of.get(there, await issue(pair, claimsOf(acme, of)))).status);
    }
    return found;
  }

  test('pays nothing for tokens that nobody can check, and for bad ones as ever', async () => {
    const believer = await started();
    acme.routes.clear();
    expect(await statuses(believer, one)).toEqual(Array(BUDGET + 1).fill(401));
    acme.publish(one.publicJwk);
    believer.clock.advance(LIMITS.issuerKeysPauseMs);
    expect(await statuses(believer, one)).toEqual(Array(BUDGET + 1).fill(200));
    // A key that it does not have, then a signature of another one.
    expect(await statuses(believer, two)).toEqual([...Array(BUDGET).fill(401), 429]);
    believer.clock.advance(3_600_000);
    expect(await statuses(believer, { ...two, kid: 'one' })).toEqual([...Array(BUDGET).fill(401), 429]);
    await believer.stop();
    const refused = await believer.database.query<{ detail: string }>(
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
      'answers nothing that is JSON',
      () => acme.routes.set('/keys', (_, response) => response.end('keys')),
      'no_key_set',
    ],
    ['answers no set', () => acme.routes.set('/keys', json({ keys: 'one' })), 'no_key_set'],
    ['answers more keys than the limit', () => acme.publish(...many), 'no_key_set'],
    ['answers without end', () => acme.routes.set('/keys', endless as never), 'unreachable'],
    [
      'leads elsewhere',
      () => acme.routes.set('/keys', (_, response) => response.writeHead(302, { Location: '/other' }).end()),
      'unreachable',
    ],
    [
      'is another one',
      () => acme.routes.set(DISCOVERY, json({ issuer: `${acme.issuer}/`, jwks_uri: `${acme.issuer}/keys` })),
      'issuer_differs',
    ],
    [
      'answers discovery with what is no JSON',
      () => acme.routes.set(DISCOVERY, (_, response) => response.end('none')),
      'no_key_set',
    ],
    ['has no discovery document', () => acme.routes.delete(DISCOVERY), 'unreachable'],
    ['names no place of keys', () => acme.routes.set(DISCOVERY, json({ issuer: acme.issuer })), 'no_key_set'],
    [
      'names a place inside',
      () => acme.routes.set(DISCOVERY, json({ issuer: acme.issuer, jwks_uri: 'http://10.0.0.1/keys' })),
      'unreachable',
    ],
  ] as const)('that %s is believed nothing', async (_what, misbehave, outcome) => {
    misbehave();
    expect([await statusOf(one), await statusOf({ ...one, kid: '0' })]).toEqual([401, 401]);
    expect(outcomes()).toEqual([`acme ${outcome}`]);
  });

  test('exactly so many keys as the limit are read', async () => {
    acme.publish(...many.slice(1), one.publicJwk);
    expect(await statusOf(one)).toBe(401);
    service.clock.advance(LIMITS.issuerKeysPauseMs);
    acme.publish(...many.slice(2), one.publicJwk);
    expect(await statusOf(one)).toBe(200);
  });

  test('keys that may not verify are none of its keys', async () => {
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

  test('another set every time takes back the one before, and nothing else', async () => {
    const token = await service.token('oidc-profile-infos:read');
    acme.routes.set('/keys', (request, response) =>
      json({ keys: [readings() % 2 === 1 ? one.publicJwk : two.publicJwk] })(request, response),
    );
    const seen: number[][] = [];
    for (let round = 0; round < 4; round += 1) {
      seen.push([
        await statusOf(round % 2 === 0 ? one : two),
        (await service.get(path(planted), token)).status,
      ]);
      service.clock.advance(LIMITS.issuerKeysPauseMs);
    }
    expect(seen).toEqual([
      [200, 200],
      [200, 200],
      [200, 200],
      [200, 200],
    ]);
    expect(readings()).toBe(4);
  });

  test('a silent issuer delays a bounded number of its own tokens, and no others', async () => {
    acme.routes.set('/keys', silent);
    const own = await service.token('oidc-profile-infos:read');
    const start = performance.now();
    const waiting = Array.from({ length: LIMITS.issuerWaitersMax }, () => statusOf(one));
    await until(() => readings() === 1);
    // Once all of them wait, one more is answered at once, and so is everybody else.
    for (let prompt: unknown; prompt !== 401; ) {
      const more = statusOf(one);
      prompt = await Promise.race([more, Bun.sleep(200)]);
      if (prompt === undefined) waiting.push(more);
    }
    expect((await service.get(path(planted), own)).status).toBe(200);
    expect(performance.now() - start).toBeLessThan(LIMITS.issuerKeysWaitMsMax);
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([401]));
    const took = performance.now() - start;
    expect(took).toBeGreaterThan(LIMITS.issuerKeysWaitMsMax - 100);
    expect(took).toBeLessThan(LIMITS.answerMsMax);
  }, 300_000);
});

describe('two issuers', () => {
  test('a silent issuer does not affect another issuer', async () => {
    const silent = await startIssuer();
    silent.routes.set(DISCOVERY, () => undefined);
    const believer = await startTrustingService(issuerEntry(silent, { name: 'silent' }), issuerEntry(acme));
    try {
      const there = await createFixture(believer.db);
      const claims = { ...claimsOf(silent, believer) };
      const held = believer.get(path(there), await issue(one, claims));
      const start = performance.now();
      const answer = await believer.get(path(there), await issue(one, { ...claims, iss: acme.issuer }));
      expect([answer.status, performance.now() - start < 1_000]).toEqual([200, true]);
      expect((await held).status).toBe(401);
    } finally {
      await believer.stop();
      silent.stop();
    }
  }, 300_000);

  test('a given jwks_uri is asked, and no discovery document', async () => {
    acme.routes.delete(DISCOVERY);
    const believer = await startTrustingService(
      issuerEntry(acme, { jwks_uri: `${acme.issuer}/keys`, audience: AUDIENCE }),
    );
    try {
      const there = await createFixture(believer.db);
      const token = await issue(one, claimsOf(acme, believer));
      expect((await believer.get(path(there), token)).status).toBe(200);
    } finally {
      await believer.stop();
    }
  });
});

async function until(isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + 5_000;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error('it did not come to that');
    await Bun.sleep(5);
  }
}
