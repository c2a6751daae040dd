import type { Uuid } from '../../../src/model/id.ts';
import { oidcProfileInfo } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { openEngine, parseDatabase } from '../../../src/ops/store/open.ts';
import { buildRecord, ISSUER, insertOf } from '../../support/service.ts';

/**
 * One of several processes that insert the same link at once. Arguments: database, realm, user, profile, number of
 * attempts. It prints `ready`, starts when it reads a line, and prints the kinds of its results as JSON.
 */
const [url = '', realm, user, profile, count] = process.argv.slice(2);
const address = parseDatabase(url);
if (!address) throw new Error(`no database ${url}`);
const engine = await openEngine(address, 'check', { version: 'test', clock: systemClock });
console.log('ready');
for await (const _ of console) break;
const attempts = Array.from({ length: Number(count) }, () => {
  const key = [realm as Uuid, user as Uuid, systemClock.mintId()] as const;
  const record = buildRecord(key, { subject: 'contended', issuer: ISSUER, oidc_profile_id: profile });
  return engine.records.commit([insertOf(oidcProfileInfo, key, record)]);
});
console.log(JSON.stringify((await Promise.all(attempts)).map(({ kind }) => kind)));
await engine.close();
