import { expect, test } from 'bun:test';
import { fillDisk, freeDisk } from '../support/ballast.ts';
import { CITUS_SETTINGS, startCluster } from '../support/citus_cluster.ts';
import { answerTo, startClusterService } from '../support/cluster_service.ts';
import { freshDaemonFolder } from '../support/daemons.ts';
import { startServer } from '../support/postgres_server.ts';
import { oidcPath } from '../support/service.ts';
import { smallFolder } from '../support/small_disk.ts';

/** For the server, two databases and its write-ahead log. */
const DISK_MB = 400;
/** More than fit into pages that are there already. */
const WRITES_MAX = 5_000;

test('on a full disk of a worker, its realms are read and their writes are 503, and other realms are served', async () => {
  const disk = await smallFolder(DISK_MB, freshDaemonFolder());
  if (disk === undefined) return;
  const worker = await startServer(CITUS_SETTINGS, disk);
  const cluster = await startCluster({ firstWorker: worker });
  const own = await startClusterService(cluster);
  const affected = await own.fixtureOn(worker);
  const unaffected = await own.fixtureOn(cluster.workers.find((each) => each !== worker) ?? worker);
  const { get, post } = own.service.withoutRetry;
  const write = () => {
    const [path, user] = own.newUser(affected);
    return answerTo(post(path, own.token, user));
  };
  const users = async () => {
    const where = `realm_id = '${affected.realm}' and email like 'user.%'`;
    const [found] = await own.database.query<{ n: number }>(
      `select count(*)::integer as n from user_info where ${where}`,
    );
    return found?.n ?? 0;
  };
  const before = await users();

  fillDisk(disk);
  let acknowledged = 0;
  let refused = await write();
  for (; refused.status === 201 && acknowledged < WRITES_MAX; refused = await write()) acknowledged += 1;
  expect([refused.status, refused.retryAfter]).toEqual([503, '1']);
  expect((await answerTo(get(oidcPath(affected), own.token))).status).toBe(200);
  expect((await own.answersIn(unaffected)).map(({ status }) => status)).toEqual([200, 200, 201]);
  expect(await users()).toBe(before + acknowledged);

  freeDisk(disk);
  expect((await write()).status).toBe(201);
  expect(await users()).toBe(before + acknowledged + 1);
  expect(await own.database.findInconsistencies()).toEqual([]);
  await own.service.stop();
  await worker.stop('immediate');
}, 300_000);
