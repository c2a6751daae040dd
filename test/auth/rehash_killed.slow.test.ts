import { expect, setDefaultTimeout, test } from 'bun:test';
import { fileURLToPath } from 'node:url';
import { NIL_UUID, type Uuid } from '../../src/domain/id.ts';
import { passwordProfileInfo } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/service/open_database.ts';
import { openChecker } from '../../src/workers/checker.ts';
import { freshDatabase } from '../support/database.ts';
import { verifyCleanRecords } from '../support/record_verification.ts';
import { createFixture, insertRecord } from '../support/service.ts';

setDefaultTimeout(300_000);

const PROCESS = fileURLToPath(new URL('../support/rehash_process.ts', import.meta.url));
const PASSWORD = 'correct\ufb03 horse battery staple';
const LINKS = 400;
const ROUNDS_MIN = 5;

test('a link has its old hash or the new one wherever the process that makes it again is killed', async () => {
  const database = await freshDatabase();
  const db = await openDatabase(database.settings(), systemClock);
  const ids = await createFixture(db);
  const old = Bun.password.hashSync(PASSWORD, { algorithm: 'bcrypt', cost: 4 });
  const checker = openChecker();
  const credentialOf = async (id: Uuid) => db.engine.credentials.get(ids.realm, ids.user, id);
  const links: Uuid[] = [];
  const made = new Set<Uuid>();
  let answers = 0;
  const versions = new Map<Uuid, string | undefined>();
  /** Adds links where all have a new hash, unless a kill came between an answer and the new hash, so that a link was answered twice. */
  async function addLinks(): Promise<void> {
    if (made.size < links.length || answers > links.length) return;
    for (let count = 0; count < LINKS; count += 1) {
      const id = systemClock.mintId();
      const members = {
        username: `killed-${id}`,
        password_profile_id: ids.passwordProfile,
        password_hash: old,
      };
      await insertRecord(db, passwordProfileInfo, [ids.realm, ids.user, id], members);
      links.push(id);
      versions.set(id, (await credentialOf(id))?.version);
    }
  }
  await addLinks();
  let rounds = 0;
  for (; made.size < links.length; rounds += 1) {
    const rest = links.filter((id) => !made.has(id));
    const words = [JSON.stringify(database.flags), ids.realm, ids.user, PASSWORD, ...rest];
    answers += await killBehind(words, 1 + ((rounds * 37) % 90));
    for (const id of links) {
      const credential = await credentialOf(id);
      expect(credential?.version).toBe(versions.get(id));
      if (credential?.hash === undefined) throw new Error(`${id} has no hash`);
      if (credential.hash !== old) made.add(id);
      expect(credential.hash === old || credential.hash.startsWith('$argon2id$v=19$m=64,t=1,p=1$')).toBe(
        true,
      );
      expect(credential.isNormalised).toBe(credential.hash !== old);
    }
    const [sample] = rest;
    const checked = sample && (await credentialOf(sample));
    if (checked?.hash !== undefined) {
      const request = { hash: checked.hash, isNormalised: checked.isNormalised, password: PASSWORD };
      expect((await checker.check(request)).isRight).toBe(true);
    }
    await addLinks();
  }
  expect(rounds).toBeGreaterThanOrEqual(ROUNDS_MIN);
  const entries = await db.engine.log.entries(NIL_UUID, 0, 10 * links.length);
  const rehashed = entries.filter(({ columns }) => columns.action === 'password.rehashed');
  expect(rehashed.map(({ columns }) => columns.object as string).sort()).toEqual([...links].sort());
  await checker.close();
  await db.engine.close();
  await verifyCleanRecords(database);
  const forms = [PASSWORD, PASSWORD.normalize('NFKC'), 'horse battery'];
  expect(await database.findPlaintext([...forms, ids.username])).toEqual([ids.username]);
});

/** Runs the process until it has answered so often, and kills it between that answer and its new hash. Returns the answers. */
async function killBehind(words: readonly string[], answers: number): Promise<number> {
  const child = Bun.spawn([process.execPath, PROCESS, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH ?? '' },
  });
  const decoder = new TextDecoder();
  let answered = 0;
  for await (const chunk of child.stdout) {
    answered += decoder.decode(chunk).split('\n').length - 1;
    if (answered < answers) continue;
    // At another moment of the work behind it in each round.
    await Bun.sleep((answers % 7) / 2);
    child.kill('SIGKILL');
  }
  await child.exited;
  return answered;
}
