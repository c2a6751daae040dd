import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import type { PostgresAddress } from '../../src/ops/store/open.ts';
import { openRealmNodes } from '../../src/ops/store/postgres/bulkheads.ts';
import { openConnectionPool } from '../../src/sql/postgres/pool.ts';
import { openPrimary } from '../../src/sql/postgres/primary.ts';
import { startProxiedCluster } from '../support/citus_cluster.ts';
import { answerTo, startClusterService, usersPath } from '../support/cluster_service.ts';
import { type Fixture, oidcPath } from '../support/service.ts';
import type { TcpProxy } from '../support/tcp_proxy.ts';

/** Realms on other nodes while a worker is slow or does not answer. Every answer is the first one: nothing is sent again. */

/** In each direction. */
const DELAY_MS = 1_000;
/** Concurrent lookups and writes in each realm of the slow worker: together more than a process has connections. */
const CALLERS = 4;
/** Less than two statements of the slow worker take. */
const UNAFFECTED_MS_MAX = 3 * DELAY_MS;

const cluster = await startProxiedCluster();
const own = await startClusterService(cluster);
const [slow, other] = cluster.workers as [(typeof cluster.workers)[0], (typeof cluster.workers)[0]];
const proxy = cluster.proxies[0] as TcpProxy;
const affected = [await own.fixtureOn(slow), await own.fixtureOn(slow), await own.fixtureOn(slow)];
const unaffected = await own.fixtureOn(other);

/** Sends requests to the realms of the first worker until the returned function is called, which returns their statuses. */
function loadAffectedRealms(): () => Promise<ReadonlySet<number>> {
  const { get, post } = own.service.withoutRetry;
  const statuses = new Set<number>();
  let isOver = false;
  const repeat = async (send: () => Promise<Response>) => {
    while (!isOver) {
      const { status, retryAfter } = await answerTo(send());
      statuses.add(status);
      if (status === 503) expect(retryAfter).toBe('1');
      await Bun.sleep(20);
    }
  };
  const running = affected.flatMap((fixture) =>
    Array.from({ length: CALLERS }).flatMap(() => [
      repeat(() => get(oidcPath(fixture), own.token)),
      repeat(() => get(usersPath(fixture), own.token)),
      repeat(() => get(userWithLinks(fixture), own.token)),
      repeat(() => post(usersPath(fixture), own.token, own.newUser(fixture)[1])),
    ]),
  );
  return async () => {
    isOver = true;
    await Promise.all(running);
    return statuses;
  };
}

const userWithLinks = (fixture: Fixture) =>
  `${usersPath(fixture)}/${fixture.user}?include=oidc_profile_infos,password_profile_infos`;

async function expectUnaffected(milliseconds: number): Promise<void> {
  const end = performance.now() + milliseconds;
  while (performance.now() < end) {
    const answers = [
      ...(await own.answersIn(unaffected)),
      await answerTo(own.service.withoutRetry.get(userWithLinks(unaffected), own.token)),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 201, 200]);
    expect(Math.max(...answers.map(({ ms }) => ms))).toBeLessThan(UNAFFECTED_MS_MAX);
    await Bun.sleep(200);
  }
}

async function expectServed(fixture: Fixture): Promise<void> {
  expect((await own.answersIn(fixture)).map(({ status }) => status)).toEqual([200, 200, 201]);
}

describe('realms on other workers', () => {
  test('realms on other workers are served as fast as before while a worker is slow', async () => {
    proxy.delay(DELAY_MS);
    const endLoad = loadAffectedRealms();
    await expectUnaffected(3_000);
    const statuses = await endLoad();
    expect([...statuses].filter((status) => ![200, 201, 503].includes(status))).toEqual([]);
    proxy.delay(0);
  }, 300_000);

  test('realms on other workers are served as fast as before while a worker answers nothing', async () => {
    proxy.stall();
    const endLoad = loadAffectedRealms();
    await expectUnaffected(LIMITS.storeWaitMsMax + 1_000);
    expect(await endLoad()).toEqual(new Set([503]));
    proxy.cut();
    proxy.resume();
    await expectServed(affected[0] as Fixture);
  }, 300_000);
});

describe('the node of a realm', () => {
  /** Counts the statements that look up a node. */
  async function openCountedNodes(now: () => number) {
    const address = own.service.settings.database as PostgresAddress;
    const pool = openConnectionPool(address, 1, await openPrimary(address));
    let count = 0;
    const counting: typeof pool = {
      ...pool,
      query(text, values) {
        count += 1;
        return pool.query(text, values);
      },
    };
    return { nodes: openRealmNodes(counting, now), pool, countLookups: () => count };
  }

  test('a process looks up the node of a realm again after realmNodesAgeMsMax', async () => {
    let at = 0;
    const { nodes, pool, countLookups } = await openCountedNodes(() => at);
    const [one, other] = [affected[0] as Fixture, unaffected];
    const found = await nodes.find(one.realm);
    expect(await nodes.find(other.realm)).not.toBe(found);
    at = LIMITS.realmNodesAgeMsMax;
    expect(nodes.known(one.realm)).toBe(found);
    at += 1;
    expect([nodes.known(one.realm), nodes.known(other.realm)]).toEqual([undefined, undefined]);
    expect(await nodes.find(one.realm)).toBe(found);
    expect(countLookups()).toBe(3);
    await pool.close();
  });

  test('a process looks up the nodes of all realms again when it caches realmNodesCachedMax', async () => {
    const { nodes, pool } = await openCountedNodes(() => 0);
    const realms = Array.from({ length: LIMITS.realmNodesCachedMax }, () => crypto.randomUUID());
    for (let start = 0; start < realms.length; start += 500)
      await Promise.all(realms.slice(start, start + 500).map((realm) => nodes.find(realm)));
    expect(nodes.known(realms[0] as string)).toBeUndefined();
    await nodes.find(realms[0] as string);
    expect(nodes.known(realms[0] as string)).toBeDefined();
    await pool.close();
  }, 300_000);
});
