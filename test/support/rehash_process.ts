import { openRehash } from '../../src/auth/sign_in/credentials.ts';
import { readSettings } from '../../src/config/parse.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/service/open_database.ts';
import { openChecker } from '../../src/workers/checker.ts';
import { openHasher } from '../../src/workers/hasher.ts';

/**
 * A process that checks the password of each of these links and rehashes it after the response, as a service does, until
 * it is killed: `rehash_process.ts FLAGS REALM USER PASSWORD LINK…`, the flags of its database as JSON. It prints the ID of each
 * link when its password was right.
 */
const [flags = '{}', realm, user, password = '', ...links] = process.argv.slice(2);
const cost = { memoryKib: 64, passes: 1 };
const { engine } = await openDatabase(readSettings(JSON.parse(flags), {}), systemClock);
const { credentials } = engine;
const [checker, hasher] = [openChecker(), openHasher(cost)];
const rehash = openRehash({ credentials, hashPassword: hasher.hash, cost, clock: systemClock });
let last: Promise<unknown> = Promise.resolve();
for (const link of links as Uuid[]) {
  const credential = await credentials.get(realm as Uuid, user as Uuid, link);
  if (credential?.hash === undefined) throw new Error(`${link} has no hash`);
  const check = await checker.check({ ...credential, hash: credential.hash, password });
  if (!check.isRight) throw new Error(`the password of ${link} is wrong`);
  process.stdout.write(`${link}\n`);
  await last;
  last = rehash({ credential, password, check });
}
await last;
await Promise.all([checker.close(), hasher.close()]);
await engine.close();
