import { eraseUser } from '../../src/audit/person_erasure.ts';
import { openLogReading } from '../../src/audit/reading.ts';
import { readSettings } from '../../src/config/parse.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/service/open_database.ts';

/**
 * A process that erases a user and is killed after the commit, before it reports the erasure:
 * `kill_during_erasure.ts FLAGS REALM USER`, the flags of its database as JSON.
 */
const [flags = '{}', realm, user] = process.argv.slice(2);
const { engine, logKeys } = await openDatabase(readSettings(JSON.parse(flags), {}), systemClock);
await eraseUser(
  {
    records: engine.records,
    reading: openLogReading(engine.log, logKeys),
    removeBuckets: async () => undefined,
    report: async () => void process.kill(process.pid, 'SIGKILL'),
  },
  { realm: realm as Uuid, user: user as Uuid },
  systemClock,
);
