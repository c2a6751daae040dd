import { expect, test } from 'bun:test';
import { statSync } from 'node:fs';
import { openRefusedAccessLog } from '../../src/audit/refused_access_log.ts';
import { openTokenGrantLog } from '../../src/audit/token_grant_log.ts';
import { createClient, listClients } from '../../src/auth/clients/clients.ts';
import { openTokenGrants } from '../../src/auth/tokens/token_grant.ts';
import { parseIpAddress } from '../../src/domain/ip_address.ts';
import { parseScopes } from '../../src/domain/principal.ts';
import { openRateLimits } from '../../src/http/server/rate_limits.ts';
import { databaseFile, startService } from '../support/service.ts';

const MINUTES = 60;
/** Requests of a flood in a minute. Only its minutes and the rate decide how many entries there are. */
const REQUESTS = 2_000;
const UNKNOWN_CLIENTS = 1_000;
const GROWTH_BYTES_MAX = 1_000_000;
/** A minute of the logs. */
const INTERVAL_MS = 50;

test('an hour of token floods by one client and by 1,000 unknown ones adds less than 1 MB to the database', async () => {
  const service = await startService();
  const { clock, db, settings } = service;
  const { access, log } = db.engine;
  const scopes = parseScopes('profile-infos:read') ?? new Set();
  const { client } = await createClient(access, 'flood', { scopes, realms: '*' }, clock);
  expect(await listClients(access)).toHaveLength(1);

  const grantRate = settings.grantRate === 'off' ? undefined : settings.grantRate;
  const off = { perAddress: undefined, perClient: undefined, badTokens: undefined };
  const limits = openRateLimits({ ...off, grants: grantRate, processes: 1 }, clock);
  const grantLog = openTokenGrantLog(log, clock, { intervalMs: INTERVAL_MS });
  const refusals = openRefusedAccessLog(log, clock, INTERVAL_MS);
  const minted = () => ({ token: '', jti: clock.mintId(), expires: 4_000_000_000, expiresIn: 3_600 });
  const grant = openTokenGrants({ mint: async () => minted() }, clock, grantLog.append);
  const sites = Array.from({ length: UNKNOWN_CLIENTS }, (_, at) =>
    parseIpAddress(`10.1.${at >> 8}.${at & 255}`),
  );

  const pause = () => Bun.sleep(2 * INTERVAL_MS);
  const file = databaseFile(service);
  const size = async () => {
    await service.database.query('pragma wal_checkpoint(truncate)');
    return statSync(file).size;
  };
  const before = await size();
  let granted = 0;
  for (let minute = 0; minute < MINUTES; minute += 1) {
    for (let count = 0; count < REQUESTS; count += 1) {
      if (count % 100 === 0) clock.advance(60_000 / (REQUESTS / 100));
      if (limits.grants?.(client.clientId)) {
        refusals.count({ clientId: client.clientId, address: sites[0] }, 'too many grants');
      } else {
        granted += 1;
        await grant(client, undefined, { address: '192.0.2.1', requestId: `${'r'.repeat(60)}${count}` });
      }
    }
    for (const address of sites) refusals.count({ clientId: undefined, address }, 'bad credentials');
    await pause();
  }
  await Promise.all([grantLog.stop(), refusals.stop()]);
  const grown = (await size()) - before;
  console.log(`${granted} grants and ${MINUTES * REQUESTS - granted} refusals in an hour: ${grown} bytes`);
  expect(granted).toBeGreaterThan(3_600);
  expect(granted).toBeLessThan(4_000);
  const [entries] = await service.database.query<{ n: number }>('select count(*) as n from act');
  expect(entries?.n).toBeLessThan(5 * MINUTES);
  expect(grown).toBeLessThan(GROWTH_BYTES_MAX);
  await service.stop();
}, 300_000);
