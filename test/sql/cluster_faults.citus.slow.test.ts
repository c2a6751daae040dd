import { afterAll, describe, expect, test } from 'bun:test';
import { NIL_UUID } from '../../src/model/id.ts';
import { startProxiedCluster } from '../support/citus_cluster.ts';
import {
  type Answer,
  answerTo,
  REALMS,
  sendUntilDone,
  startClusterService,
  usersPath,
} from '../support/cluster_service.ts';
import { runDoctorOn } from '../support/doctor_report.ts';
import type { PostgresServer } from '../support/postgres_server.ts';
import type { Fixture } from '../support/service.ts';
import type { ConnectionFault, TcpProxy } from '../support/tcp_proxy.ts';

/** A service while a worker of its cluster refuses writes, or its connection to the node that routes fails in a commit. */

const RECOVERY_MS = 1_000;
/** Citus sends this word alone. Every transaction begins with READ COMMITTED. */
const COMMIT = 'COMMIT\0';

const cluster = await startProxiedCluster();
const own = await startClusterService(cluster);
await setRecovery(`${RECOVERY_MS}ms`);
const home = await cluster.workerOf(own.adminUrl, NIL_UUID);
const at = cluster.workers.findIndex((each) => each !== home);
/** The worker without the log of the installation, its proxy, and a realm on it. */
const [worker, proxy] = [cluster.workers[at] as PostgresServer, cluster.proxies[at] as TcpProxy];
const affected = await own.fixtureOn(worker);
/** A realm on the other worker. */
const unaffected = await own.fixtureOn(home);
afterAll(async () => {
  for (const each of cluster?.proxies ?? []) each.stop();
});

/** Sets how often every node ends transactions that were left prepared. */
async function setRecovery(interval: string): Promise<void> {
  for (const node of cluster.nodes) {
    await cluster.run(own.adminUrl, `alter system set citus.recover_2pc_interval = '${interval}'`, node);
    await cluster.run(own.adminUrl, 'select pg_reload_conf()', node);
  }
}

/** The statuses of a lookup, a list and a write; each 503 says when to try again. */
async function statusesIn(fixture: Fixture): Promise<readonly number[]> {
  const answers = await own.answersIn(fixture);
  for (const { status, retryAfter } of answers) if (status === 503) expect(retryAfter).toBe('1');
  return answers.map(({ status }) => status);
}

const SERVED = [200, 200, 201];

async function expectServed(fixture: Fixture): Promise<void> {
  expect(await statusesIn(fixture)).toEqual(SERVED);
}

const post = (path: string, body: object, key: string) =>
  own.service.withoutRetry.post(path, own.token, body, { 'Idempotency-Key': key });

describe('a worker that refuses writes', () => {
  test('realms of a read-only worker are read, their writes are 503, and other realms are served', async () => {
    const name = new URL(own.adminUrl).pathname.slice(1);
    await cluster.run(own.adminUrl, `alter database ${name} set default_transaction_read_only = on`, worker);
    proxy.cut();
    expect(await statusesIn(affected)).toEqual([200, 200, 503]);
    await expectServed(unaffected);
    await cluster.run(worker.url(), `alter database ${name} reset default_transaction_read_only`, worker);
    proxy.cut();
    await expectServed(affected);
  });

  test('writes on a worker that has lost the extension are 503, and other realms are served', async () => {
    const { port } = proxy;
    await cluster.run(own.adminUrl, 'drop extension citus cascade', worker);
    proxy.cut();
    const [lookup, , write] = await statusesIn(affected);
    expect([lookup, write]).toEqual([200, 503]);
    await expectServed(unaffected);
    await cluster.run(own.adminUrl, 'create extension citus', worker);
    await cluster.run(own.adminUrl, `select start_metadata_sync_to_node('127.0.0.1', ${port})`);
    await expectServed(affected);
  });
});

/** One row, as the routers see it. */
async function count(from: string): Promise<number> {
  const [row] = await own.database.query<{ n: number }>(`select count(*)::integer as n from ${from}`);
  return row?.n ?? 0;
}

async function preparedTransactions(): Promise<number> {
  const counts = await Promise.all(
    cluster.nodes.map((node) =>
      cluster.run<{ n: number }>(own.adminUrl, 'select count(*)::integer as n from pg_prepared_xacts', node),
    ),
  );
  return counts.flat().reduce((sum, { n }) => sum + n, 0);
}

/** The sequence numbers of the changes of a realm have no gap. */
async function expectNoGap({ realm }: Fixture): Promise<void> {
  const where = `log_entry where realm_id = '${realm}'`;
  const [last] = await own.database.query<{ seq: number }>(`select max(seq)::integer as seq from ${where}`);
  expect(await count(where)).toBe(last?.seq ?? 0);
}

let keys = 0;

/** The fault of a connection between two nodes while a commit is on its way, and a request that it concerns. */
interface CutCommit {
  readonly word: string;
  readonly fault: ConnectionFault;
}

/** A client of the service, sent again until the fault hits one of them. Returns the answer that it hit. */
async function sendIntoFault({ word, fault }: CutCommit, send: (key: string) => Promise<Response>) {
  let isHit = false;
  const sprung = proxy.faultNext(word, fault).then(() => {
    isHit = true;
  });
  for (;;) {
    keys += 1;
    const key = `cut-${keys}`;
    const answer: Answer = await answerTo(send(key));
    // The fault may have hit the commit of another request.
    await Promise.race([sprung, Bun.sleep(100)]);
    if (isHit) return { key, answer };
    expect(answer.status).toBe(201);
  }
}

describe('a connection between nodes that fails in the middle of a commit', () => {
  const oneNode: readonly ConnectionFault[] = ['unheard', 'unanswered', 'silent'];
  test.each(oneNode)(
    'a write in a realm is done once, where the connection to its worker is %s at the commit',
    async (fault) => {
      const email = (key: string) => `${key}@example.com`;
      const body = (key: string) => ({
        data: { type: 'user_authentication_info', name: 'User', email: email(key) },
      });
      const path = usersPath(affected);
      const { key, answer } = await sendIntoFault({ word: COMMIT, fault }, (each) =>
        post(path, body(each), each),
      );
      expect([answer.status, answer.retryAfter]).toEqual([503, '1']);
      const stored = await count(`user_info where email = '${email(key)}'`);
      expect(stored).toBe(fault === 'unheard' ? 0 : 1);
      await expectServed(unaffected);
      const id = await sendUntilDone(() => post(path, body(key), key));
      expect(await sendUntilDone(() => post(path, body(key), key))).toBe(id);
      expect(await count(`user_info where email = '${email(key)}'`)).toBe(1);
      await expectNoGap(affected);
      proxy.cut();
    },
  );

  const twoNodes: readonly (readonly [string, ConnectionFault])[] = [
    ['PREPARE TRANSACTION', 'unheard'],
    ['PREPARE TRANSACTION', 'unanswered'],
    ['COMMIT PREPARED', 'unheard'],
    ['COMMIT PREPARED', 'unanswered'],
    ['COMMIT PREPARED', 'silent'],
  ];
  test.each(twoNodes)(
    'a realm that two nodes commit is created once, where the connection is cut at %s (%s)',
    async (word, fault) => {
      const body = (key: string) => ({ data: { type: 'authentication-realm', name: key } });
      const { key, answer } = await sendIntoFault({ word, fault }, (each) => post(REALMS, body(each), each));
      // Once all nodes have prepared the commit, it is certain: the one that was cut off catches up.
      const isCertain = word === 'COMMIT PREPARED' && fault !== 'silent';
      expect(answer.status).toBe(isCertain ? 201 : 503);
      await expectServed(unaffected);
      await expectServed(affected);
      // A silent connection holds the locks of its commit until it ends.
      if (fault === 'silent') proxy.cut();
      const id = await sendUntilDone(() => post(REALMS, body(key), key));
      expect(await sendUntilDone(() => post(REALMS, body(key), key))).toBe(id);
      while ((await preparedTransactions()) > 0) await Bun.sleep(50);
      expect(await count(`realm where name = '${key}'`)).toBe(1);
      expect(await count(`realm where realm_id = '${id}'`)).toBe(1);
      expect(await count(`log_entry where realm_id = '${id}'`)).toBe(1);
      expect(await count(`idempotency where created = '${id}'`)).toBe(1);
    },
  );
});

describe('a transaction that was left prepared', () => {
  const client = { data: { name: 'shop', scopes: ['users:read'], realms: '*' } };
  const createClient = () => answerTo(own.service.withoutRetry.post('/admin/v1/clients', own.token, client));

  test('a prepared transaction blocks administration until it is recovered, and doctor names its node', async () => {
    await setRecovery('-1');
    // A recovery that has begun already ends by then.
    await Bun.sleep(2 * RECOVERY_MS);
    const sprung = proxy.faultNext('COMMIT PREPARED', 'unheard');
    // Its commit was decided.
    expect((await createClient()).status).toBe(201);
    await sprung;
    const blocked = await createClient();
    expect([blocked.status, blocked.retryAfter]).toEqual([503, '1']);
    await expectServed(affected);
    await expectServed(unaffected);
    // doctor takes a commit of ten seconds for an interrupted one.
    const findings = async () => (await runDoctorOn(own.database)).report('server').findings;
    while ((await findings()).length === 0) await Bun.sleep(500);
    expect((await findings()).map(({ says }) => says)).toEqual([
      `node 127.0.0.1:${proxy.port} has prepared transactions that an interrupted commit left (1), which block writers of their ` +
        'rows: run select recover_prepared_transactions() on every node, or set citus.recover_2pc_interval there',
    ]);
    for (const node of cluster.nodes)
      await cluster.run(own.adminUrl, 'select recover_prepared_transactions()', node);
    expect(await preparedTransactions()).toBe(0);
    expect(await findings()).toEqual([]);
    expect((await createClient()).status).toBe(201);
    await setRecovery(`${RECOVERY_MS}ms`);
  });
});

test('records, changes and sequence numbers agree on every node after all faults', async () => {
  await expectNoGap(affected);
  await expectNoGap(unaffected);
  expect(await own.database.findInconsistencies()).toEqual([]);
});
