import { expect, test } from 'bun:test';
import { statSync } from 'node:fs';
import { createClient } from '../../src/access/clients/clients.ts';
import type { Client } from '../../src/access/store/clients.ts';
import { openTokenGrants } from '../../src/access/tokens/token_grant.ts';
import { openRateLimits } from '../../src/http/server/rate_limits.ts';
import { openCounterLog } from '../../src/log/counters.ts';
import { openRefusedAccessLog } from '../../src/log/refused_access.ts';
import { parseIpAddress } from '../../src/model/ip_address.ts';
import { parseScopes } from '../../src/model/principal.ts';
import { databaseFile, type Service, startService } from '../support/service.ts';

/** Requests of a flood in a minute. */
const REQUESTS = 2_000;
const UNKNOWN_CLIENTS = 1_000;
const GROWTH_BYTES_MAX = 1_000_000;

/** A service's token endpoint behind its authentication, on its database, with a short minute of the logs. */
function openTokenEndpoint({ clock, db, settings }: Service, intervalMs: number) {
  const { log, access } = db.engine;
  const limits = openRateLimits({ ...settings, badTokenRate: 'off', processes: 1 }, clock);
  const store = { append: log.append, recordClientUsage: access.recordClientUsage };
  const counters = openCounterLog(store, clock, { intervalMs });
  const refusals = openRefusedAccessLog(counters, clock.now);
  const minted = () => ({ token: '', jti: clock.mintId(), expires: 4_000_000_000, expiresIn: 3_600 });
  const grant = openTokenGrants({ mint: async () => minted() }, clock, async (entry) =>
    counters.add(String(entry.object), entry),
  );
  let granted = 0;
  return {
    refusals,
    granted: () => granted,
    async request(client: Client, count: number, address = '192.0.2.1') {
      if (limits.grants?.(client.clientId)) {
        refusals.count({ clientId: client.clientId, address: parseIpAddress(address) }, 'too many grants');
        return;
      }
      granted += 1;
      await grant(client, undefined, { address, requestId: `${'r'.repeat(60)}${count}` });
    },
    /** Until the logs of a minute are written. */
    endOfMinute: () => Bun.sleep(2 * intervalMs),
    stop: counters.stop,
  };
}

async function createFloodClient({ db, clock }: Service): Promise<Client> {
  const scopes = parseScopes('profile-infos:read') ?? new Set();
  return (await createClient(db.engine.access, 'flood', { scopes, realms: '*' }, clock)).client;
}

async function databaseBytes(service: Service): Promise<number> {
  await service.database.query('pragma wal_checkpoint(truncate)');
  return statSync(databaseFile(service)).size;
}

async function entryCount({ database }: Service): Promise<number> {
  const [entries] = await database.query<{ n: number }>('select count(*) as n from act');
  return entries?.n ?? 0;
}

test('an hour of token floods by one client and by 1,000 unknown ones adds less than 1 MB to the database', async () => {
  const minutes = 60;
  const service = await startService();
  const client = await createFloodClient(service);
  const intervalMs = 50;
  const endpoint = openTokenEndpoint(service, intervalMs);
  const sites = Array.from({ length: UNKNOWN_CLIENTS }, (_, at) =>
    parseIpAddress(`10.1.${at >> 8}.${at & 255}`),
  );
  const [before, entriesBefore] = [await databaseBytes(service), await entryCount(service)];
  // A busy machine may need several intervals of the logs for the requests of a minute.
  let intervals = 0;
  for (let minute = 0; minute < minutes; minute += 1) {
    const start = performance.now();
    for (let count = 0; count < REQUESTS; count += 1) {
      if (count % 100 === 0) service.clock.advance(60_000 / (REQUESTS / 100));
      await endpoint.request(client, count);
    }
    for (const address of sites) endpoint.refusals.count({ clientId: undefined, address }, 'bad credentials');
    intervals += Math.ceil((performance.now() - start) / intervalMs);
    await endpoint.endOfMinute();
  }
  await endpoint.stop();
  const grown = (await databaseBytes(service)) - before;
  const granted = endpoint.granted();
  console.log(`${granted} grants and ${minutes * REQUESTS - granted} refusals in an hour: ${grown} bytes`);
  expect(granted).toBeGreaterThan(3_600);
  expect(granted).toBeLessThan(4_000);
  // Of each of three keys the first event and the number of the others.
  expect((await entryCount(service)) - entriesBefore).toBeLessThanOrEqual(6 * intervals);
  expect(grown).toBeLessThan((GROWTH_BYTES_MAX * intervals) / minutes);
}, 300_000);

test('a token flood by 1,000 known clients adds two entries for each client and minute, however many requests', async () => {
  const [minutes, requests, rate] = [2, 20, 10];
  const service = await startService({ grantRate: `${rate}/60` });
  const clients: Client[] = [];
  for (let made = 0; made < 1_000; made += 1) clients.push(await createFloodClient(service));
  const intervalMs = 2_000;
  const endpoint = openTokenEndpoint(service, intervalMs);
  const [before, entriesBefore] = [await databaseBytes(service), await entryCount(service)];
  const start = performance.now();
  for (let minute = 0; minute < minutes; minute += 1) {
    service.clock.advance(60_000);
    for (let count = 0; count < requests; count += 1)
      for (const client of clients) await endpoint.request(client, count, `10.2.${minute}.${count}`);
    await endpoint.endOfMinute();
  }
  await endpoint.stop();
  const intervals = Math.max(minutes, Math.ceil((performance.now() - start) / intervalMs));
  const grown = (await databaseBytes(service)) - before;
  const entries = (await entryCount(service)) - entriesBefore;
  const granted = endpoint.granted();
  console.log(`${granted} grants to 1,000 clients in ${minutes} minutes: ${entries} entries, ${grown} bytes`);
  expect(granted).toBeGreaterThanOrEqual(clients.length * minutes * rate);
  expect(granted).toBeLessThan(clients.length * minutes * requests);
  // The first grant of a client has an entry of its own.
  expect(entries).toBeLessThanOrEqual(clients.length * (2 * intervals + 1));
  expect(grown / entries).toBeLessThan(1_000);
}, 300_000);
