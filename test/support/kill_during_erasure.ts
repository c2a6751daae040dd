import { readSettings } from '../../src/app/config/parse.ts';
import { openDatabase } from '../../src/app/open_database.ts';
import { eraseUser } from '../../src/log/person_erasure.ts';
import { openLogReading } from '../../src/log/reading.ts';
import type { Uuid } from '../../src/model/id.ts';
import { systemClock } from '../../src/ops/process/clock.ts';

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
