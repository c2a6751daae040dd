import { Fault } from '../../src/model/fault.ts';
import type { Uuid } from '../../src/model/id.ts';
import { user } from '../../src/model/resources.ts';
import type { Store } from '../../src/model/store.ts';
import { VERSION } from '../../src/model/version.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine, parseDatabase } from '../../src/ops/store/open.ts';
import { draftDescribed } from '../../src/records/plan.ts';

/**
 * Writes users, one to a commit, until SIGTERM or a kill. Arguments: database, realm, and the number of concurrent commits.
 * It prints `requested ID` before each, then `committed ID` or `failed ID CODE`.
 */
const [url = '', realm, concurrency = '1'] = process.argv.slice(2);
const address = parseDatabase(url);
if (!address) throw new Error(`no database ${url}`);
const engine = await openEngine(address, 'check', { version: VERSION, clock: systemClock });
let isStopped = false;
process.once('SIGTERM', () => {
  isStopped = true;
});
while (!isStopped) {
  await Promise.all(
    Array.from({ length: Number(concurrency) }, () => writeOne(engine.records, realm as Uuid)),
  );
}
engine.close();

async function writeOne(store: Store, realmId: Uuid): Promise<void> {
  const id = systemClock.mintId();
  const members = { name: 'Jane Doe', email: `${id}@example.com` };
  const write = draftDescribed(user, [realmId, id], members, {
    clock: systemClock,
    actor: 'writer',
  });
  console.log(`requested ${id}`);
  try {
    const { kind } = await store.commit([write]);
    if (kind !== 'written') throw new Error(`the store returned ${kind}`);
    console.log(`committed ${id}`);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    console.log(`failed ${id} ${error.code}`);
    await Bun.sleep(2);
  }
}
