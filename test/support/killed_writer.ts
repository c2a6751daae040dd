import { draftDescribed } from '../../src/directory/plan.ts';
import type { Store } from '../../src/directory/store.ts';
import { Fault } from '../../src/domain/fault.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { user } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { VERSION } from '../../src/platform/version.ts';
import { openEngine, parseDatabase } from '../../src/store/open.ts';

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
