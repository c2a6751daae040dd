import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { createPublicKey, verify } from 'node:crypto';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readLine } from '../../src/audit/checkpoint.ts';
import { startCheckpoints } from '../../src/audit/checkpoints.ts';
import { readErasures } from '../../src/cli/restore.ts';
import { readSettings } from '../../src/config/parse.ts';
import { openLeases } from '../../src/jobs/leases.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { EXIT } from '../../src/platform/exit.ts';
import { checkpointSinksOf } from '../../src/service/checkpoint_sinks.ts';
import { startAdminApi } from '../http/admin/admin_api.ts';
import { findPort } from '../support/daemons.ts';
import { freshDatabase } from '../support/database.ts';
import { withDatabase } from '../support/erasure_fixtures.ts';
import { AUTHREALM, killCommands, runAuthrealm, startCommand } from '../support/processes.ts';
import { createFixture, freshFolder, startService } from '../support/service.ts';

setDefaultTimeout(300_000);

/** A receiver of checkpoints: a real server that appends each accepted body to a file. */
interface CheckpointReceiver {
  readonly url: string;
  readonly path: string;
  /** Every message received. */
  readonly received: readonly { readonly headers: Headers; readonly body: string }[];
  /** Sets its answer from now on; a body answered with 2xx is stored. */
  answer(by: () => Response | Promise<Response>): void;
  /** The stored lines. */
  lines(): readonly string[];
  stop(): void;
}

function openCheckpointReceiver(port = 0): CheckpointReceiver {
  const path = join(freshFolder(), 'stored.ndjson');
  writeFileSync(path, '');
  const received: { headers: Headers; body: string }[] = [];
  let answer: () => Response | Promise<Response> = () => new Response(null, { status: 204 });
  const server = Bun.serve({
    port,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = await request.text();
      received.push({ headers: request.headers, body });
      const reply = await answer();
      if (reply.ok) appendFileSync(path, body);
      return reply;
    },
  });
  servers.push(server);
  return {
    url: `http://127.0.0.1:${server.port}/checkpoints?for=us`,
    path,
    received,
    answer(by) {
      answer = by;
    },
    lines: () => readFileSync(path, 'utf8').split('\n').filter(Boolean),
    stop: () => void server.stop(true),
  };
}

const servers: { stop(isAtOnce: boolean): unknown }[] = [];
afterAll(() => {
  for (const server of servers) server.stop(true);
  killCommands();
});

const receiverFlags = (url: string) => ({ checkpointUrl: url, allowLoopbackWebhooks: 'true' });
const kindsOf = (lines: readonly string[]) => lines.map((line) => JSON.parse(line).kind as string);

describe('a receiver', () => {
  test('a checkpoint receiver stores signed messages whose lines verify and restore read', async () => {
    const receiver = openCheckpointReceiver();
    const api = await startAdminApi(receiverFlags(receiver.url));
    const { db, database } = api.service;
    const { realm, user } = await createFixture(db);
    const erased = await api.request('POST', '/erasures', { data: { realm_id: realm, user_id: user } });
    expect(erased.status).toBe(201);
    await api.service.stop();
    expect(new Set(kindsOf(receiver.lines()))).toEqual(new Set(['checkpoint', 'erasure']));
    const words = [...database.args, '--checkpoints', receiver.path];
    const verified = await runAuthrealm(['audit', 'verify', '--json', ...words]);
    expect([verified.code, JSON.parse(verified.stdout)]).toMatchObject([
      EXIT.done,
      { clean: true, not_seen: null, checkpoint_file: receiver.path },
    ]);
    const { erasures } = await readErasures(Bun.file(receiver.path).stream(), {
      name: receiver.path,
      keys: db.logKeys,
      takesUnsigned: false,
    });
    expect(erasures).toMatchObject([{ realm, user }]);
    const output = await runAuthrealm(['audit', 'key', ...database.args]);
    const key = createPublicKey({
      key: Buffer.concat([
        Buffer.from('302a300506032b6570032100', 'hex'),
        Buffer.from(output.stdout.trim().replace(/^whpk_/, ''), 'base64'),
      ]),
      format: 'der',
      type: 'spki',
    });
    for (const { headers, body } of receiver.received) {
      const [id, timestamp, signatureHeader] = ['id', 'timestamp', 'signature'].map((name) =>
        headers.get(`webhook-${name}`),
      );
      const signature = Buffer.from(signatureHeader?.replace(/^v1a,/, '') ?? '', 'base64');
      expect(verify(null, Buffer.from(`${id}.${timestamp}.${body}`), key, signature)).toBe(true);
      expect(verify(null, Buffer.from(`${id}.${timestamp}.${body} `), key, signature)).toBe(false);
      expect(headers.get('content-type')).toBe('application/x-ndjson');
    }
  });

  test('an unreachable receiver later gets every erasure and the newest checkpoints; the file gets them at once', async () => {
    const database = await freshDatabase();
    const port = findPort();
    const url = `http://127.0.0.1:${port}/`;
    const file = join(freshFolder(), 'points');
    await withDatabase(database, async (db) => {
      const { engine, logKeys } = db;
      const flags = { ...database.flags, ...receiverFlags(url), checkpointFile: file };
      const first = await createFixture(db);
      for (let at = 1; at <= 150; at += 1) {
        await database.tamper(
          `insert into erasure (realm_id, user_id, at) values (?, ?, ${at})`,
          ...[first.realm, systemClock.mintId()],
        );
      }
      const errorCodes: string[] = [];
      const checkpoints = startCheckpoints(
        {
          store: engine.log,
          leases: openLeases(engine.leases, 60_000, systemClock),
          keys: logKeys,
          sinks: checkpointSinksOf(readSettings(flags, {}), logKeys, systemClock),
          retentionDays: 90,
          clock: systemClock,
          name: 'away',
          onError: ({ code = '' }) => errorCodes.push(code),
        },
        100,
      );
      while (errorCodes.length < 3) await Bun.sleep(10);
      const { seq } = (await engine.log.head(first.realm)) ?? { seq: 0 };
      await createFixture(db, { realm: first.realm });
      while (errorCodes.length < 6) await Bun.sleep(10);
      expect(new Set(errorCodes)).toEqual(new Set(['RECEIVER_UNREACHABLE']));
      const inFile = readFileSync(file, 'utf8').trim().split('\n');
      expect(kindsOf(inFile).filter((kind) => kind === 'erasure')).toHaveLength(150);
      expect(checkpoints.ageMs()).toBeGreaterThan(200);
      const receiver = openCheckpointReceiver(port);
      while ((await database.query('select 1 from erasure where told_at is null')).length > 0)
        await Bun.sleep(10);
      await checkpoints.stop();
      const lines = receiver.lines().map((text) => readLine(text, logKeys));
      expect(lines.filter(({ kind }) => kind === 'erasure')).toHaveLength(150);
      const positions = lines.flatMap((line) =>
        line.kind === 'checkpoint' && line.isSigned
          ? line.logs.map(({ log, position }) => [log, position])
          : [],
      );
      const ofRealm = positions
        .filter(([log]) => log === first.realm)
        .map(([, position]) => Number(position));
      // Positions from the time without a receiver are not sent.
      expect([ofRealm.length, (ofRealm[0] ?? 0) > seq]).toEqual([1, true]);
    });
  });

  test.each([
    ['rejects', () => new Response(null, { status: 500 }), 'HTTP_500'],
    ['redirects', () => Response.redirect('http://127.0.0.1:1/', 307), 'HTTP_307'],
    ['hangs', () => new Promise<Response>(() => undefined), 'RECEIVER_UNREACHABLE'],
  ])('a receiver that %s is logged, and an erasure is answered 503 in time', async (_name, reply, cause) => {
    const receiver = openCheckpointReceiver();
    receiver.answer(reply);
    const api = await startAdminApi(receiverFlags(receiver.url));
    const { realm, user } = await createFixture(api.service.db);
    const begun = performance.now();
    const erased = await api.request('POST', '/erasures', { data: { realm_id: realm, user_id: user } });
    expect(erased.status).toBe(503);
    expect(performance.now() - begun).toBeLessThan(8_000);
    receiver.answer(() => new Response(null, { status: 200 }));
    await api.service.stop();
    expect(api.service.log).toContainEqual({
      event: 'checkpoint_failed',
      cause,
      since: expect.stringMatching(/^\d{4}-/),
    });
    expect(kindsOf(receiver.lines())).toContain('erasure');
  });
});

test('services over one database with a receiver each write to every receiver', async () => {
  const database = await freshDatabase();
  const receivers = [openCheckpointReceiver(), openCheckpointReceiver()];
  const services = [];
  for (const { url } of receivers)
    services.push(await startService({ ...database.flags, ...receiverFlags(url) }));
  for (const receiver of receivers) while (receiver.lines().length === 0) await Bun.sleep(10);
  const leases = await database.query('select name from lease');
  expect(JSON.stringify(leases)).not.toContain('for=us');
  for (const service of services) await service.stop();
});

describe('erase user', () => {
  test('an erasure whose command is killed before the receiver answers is reported by the next start of the service', async () => {
    const receiver = openCheckpointReceiver();
    receiver.answer(() => new Promise(() => undefined));
    const database = await freshDatabase();
    const { realm, user } = await withDatabase(database, createFixture);
    const flags = ['--checkpoint-url', receiver.url, '--allow-loopback-webhooks'];
    const erasing = startCommand([
      AUTHREALM,
      'erase',
      'user',
      '--yes',
      realm,
      user,
      ...database.args,
      ...flags,
    ]);
    while (receiver.received.length === 0) await Bun.sleep(5);
    erasing.process.kill('SIGKILL');
    await erasing.process.exited;
    expect(await database.query('select 1 from user_info where id = ?', user)).toEqual([]);
    expect(receiver.lines()).toEqual([]);
    receiver.answer(() => new Response(null, { status: 204 }));
    const service = await startService({ ...database.flags, ...receiverFlags(receiver.url) });
    await service.stop();
    const erasures = receiver.lines().filter((line) => JSON.parse(line).kind === 'erasure');
    expect(erasures.map((line) => JSON.parse(line))).toMatchObject([{ realm_id: realm, user_id: user }]);
  });
});

describe('--checkpoint-url', () => {
  const refusalOf = (flags: object): string => {
    try {
      readSettings({ database: 'sqlite:none.db', ...flags }, {});
      return '';
    } catch (error) {
      return String(error);
    }
  };

  test.each([
    ['http://receiver.example/', {}, 'must be an https URL on port 443'],
    ['https://receiver.example:8443/', {}, 'must be an https URL on port 443'],
    ['http://127.0.0.1:8080/', {}, 'must be an https URL on port 443'],
    ['https://10.0.0.1/', {}, 'a host name or a public IP address'],
    ['https://[fd00::1]/', { allowLoopbackWebhooks: 'true' }, 'a host name or a public IP address'],
    ['http://receiver.example/', { allowLoopbackWebhooks: 'true' }, 'must be an https URL on port 443'],
    ['https://user:secret@receiver.example/', {}, 'must be an https URL without userinfo'],
    ['https://receiver.example/#here', {}, 'must be an https URL without userinfo'],
    ['receiver.example', {}, 'must be an https URL without userinfo'],
    ['ftp://receiver.example/', {}, 'must be an https URL without userinfo'],
  ])('--checkpoint-url %s with %j is rejected', (checkpointUrl, more, message) => {
    expect(refusalOf({ checkpointUrl, ...more })).toContain(message);
  });

  test.each([
    ['https://receiver.example/checkpoints?key=7', {}],
    ['http://localhost:8080/', { allowLoopbackWebhooks: 'true' }],
    ['https://[::1]:8443/', { allowLoopbackWebhooks: 'true' }],
  ])('--checkpoint-url %s with %j is accepted', (checkpointUrl, more) => {
    expect(refusalOf({ checkpointUrl, ...more })).toBe('');
  });
});
