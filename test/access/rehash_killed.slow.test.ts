import { afterAll, expect, setDefaultTimeout, test } from 'bun:test';
import bcrypt from 'bcryptjs';
import { NIL_UUID } from '../../src/model/id.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { Credential } from '../../src/sign_in/store/credentials.ts';
import { openFreshDatabase, textsInFiles } from '../support/database.ts';
import { freshFolder } from '../support/folder.ts';
import { movableClock } from '../support/movable_clock.ts';
import { killCommands } from '../support/processes.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { verifyCleanRecords } from '../support/record_verification.ts';
import { type ServiceProcess, serveWithClient } from '../support/service_process.ts';
import { createSettingsRealms } from '../support/settings_realms.ts';
import {
  type AccountTokensAnswer,
  createPassword,
  createSignInClient,
  DEVICE_HEADER,
  type PasswordFixture,
  passwordBody,
  requestTokens,
} from '../support/sign_in.ts';

/** A service that is killed after the response to a right password: docs/guides/password-guessing.md#hashes. */

setDefaultTimeout(400_000);
afterAll(killCommands);

const ROUNDS = 25;
/** Of each round: one whose rehash is waited for, which starts the worker, and one whose rehash the kill interrupts. */
const LINKS = 2 * ROUNDS;
/** Time from a response to the kill in the last rounds, by turns: shorter, and longer than a hash takes. */
const KILL_MS_MAX = [20, 150] as const;
/** Sign-ins of a link whose rehash was skipped, because another password was hashed. */
const TRIES_MAX = 50;
/** How long a new hash usually takes; on a busy machine several tries are needed. */
const REHASH_MS = 100;

/** A link with its old hash. */
interface Link extends PasswordFixture {
  readonly hash: string;
  readonly version: string;
  /** Its password is right only when cut, and never rehashed. */
  readonly isCut: boolean;
}

/** Texts that occur nowhere else: at the beginning and the end of each password. */
const [HEAD, TAIL] = [`Geheim${systemClock.mintId()}`, `Ende${systemClock.mintId()}`];
const passwordOf = (index: number) => `${HEAD} e\ufb03cient pa\u0308sswort ${index} ${TAIL}`;

type OldHash = (password: string) => { readonly hash: string; readonly isNormalised?: boolean };

/** Hashes that other programs made, and one of an earlier cost. */
const OLD_HASHES: readonly OldHash[] = [
  (password) => ({ hash: Bun.password.hashSync(password, { algorithm: 'bcrypt', cost: 4 }) }),
  (password) => ({ hash: argon2id(password, 64, 1) }),
  (password) => ({ hash: argon2id(password.normalize('NFKC'), 7_168, 5), isNormalised: true }),
];
const CUT_HASH: OldHash = (password) => ({ hash: bcrypt.hashSync(password, 4) });
const NEW_HASH = '$argon2id$v=19$m=19456,t=2,p=1$';

function argon2id(password: string, memoryCost: number, timeCost: number): string {
  return Bun.password.hashSync(password, { algorithm: 'argon2id', memoryCost, timeCost });
}

const seed = freshSeed();
const chance = seededRandom(seed);
const { database, db } = await openFreshDatabase();
const { accounts } = await createSettingsRealms(db);
const client = await createSignInClient({ db, clock: movableClock() });
/** Where the service makes temporary files. */
const temporary = freshFolder();
/** Of all services. */
const outputs: string[] = [];
/** Device tokens and account tokens of all sign-ins. */
const tokens: string[] = [];

async function credentialOf({
  user,
  info,
}: PasswordFixture): Promise<Credential & { readonly hash: string }> {
  const found = await db.engine.credentials.get(accounts, user, info);
  if (found?.hash === undefined) throw new Error(`${info} has no hash`);
  return { ...found, hash: found.hash };
}

const isRehashed = async (link: Link) => (await credentialOf(link)).hash !== link.hash;

async function createLinks(): Promise<readonly Link[]> {
  const { profile } = await createPassword(db, accounts);
  const links: Link[] = [];
  for (let index = 0; index < LINKS; index += 1) {
    const password = passwordOf(index);
    const isCut = index % 10 === 1;
    const oldHash = isCut ? CUT_HASH : OLD_HASHES[index % OLD_HASHES.length];
    const old = oldHash?.(password) ?? { hash: '' };
    const created = await createPassword(db, accounts, { profile, password, ...old });
    const { version } = await credentialOf(created);
    links.push({ ...created, hash: old.hash, version, isCut });
  }
  return links;
}

function start(): Promise<ServiceProcess> {
  const { clientId: client_id, secret: client_secret } = client;
  return serveWithClient(database, { client_id, client_secret }, [], { TMPDIR: temporary });
}

async function signIn(
  served: ServiceProcess,
  token: string,
  link: Link,
  password = link.password,
): Promise<number> {
  const answer = await requestTokens(served, token, passwordBody(link, { password }));
  if (answer.status !== 201) return answer.status;
  const { data } = (await answer.json()) as AccountTokensAnswer;
  tokens.push(answer.headers.get(DEVICE_HEADER) ?? '', data[0]?.token ?? '');
  return answer.status;
}

/** Each link has its old hash or the new one, and the version of its password. */
async function expectWhole(links: readonly Link[]): Promise<void> {
  for (const link of links) {
    const { hash, isNormalised, version } = await credentialOf(link);
    expect(version).toBe(link.version);
    if (hash === link.hash) continue;
    expect([hash.startsWith(NEW_HASH), isNormalised, link.isCut]).toEqual([true, true, false]);
  }
}

/** All forms in which a password could be somewhere: as typed, as hashed, as bcrypt cuts them, and its parts. */
function formsOf(password: string): readonly string[] {
  const whole = [password, password.normalize('NFKC')];
  return [...whole, ...whole.map((text) => Buffer.from(text).subarray(0, 72).toString()), HEAD, TAIL];
}

/** No file of the database, and no temporary one, contains a password or a token. A username is found, where it must be. */
async function expectNoPlaintext({ username, password }: Link): Promise<void> {
  const texts = [...formsOf(password), ...tokens.slice(-2)];
  const temporaryFiles = new Bun.Glob('**/*').scanSync({ cwd: temporary, dot: true, absolute: true });
  expect(textsInFiles([...temporaryFiles], texts)).toEqual([]);
  expect(await database.findPlaintext([...texts, username])).toEqual([username]);
}

/** Kills a service after the response to the sign-in of `target`. Its worker made the new hash of `first` before. */
async function killAfterSignIn(first: Link, target: Link, killMs: number): Promise<void> {
  const served = await start();
  const token = await served.token();
  expect(await signIn(served, token, target, `${HEAD} wrong`)).toBe(400);
  await signInUntilRehashed(served, token, first);
  expect(await signIn(served, token, target)).toBe(201);
  await Bun.sleep(killMs);
  served.running.process.kill('SIGKILL');
  await served.running.process.exited;
  outputs.push(served.running.output());
}

async function signInUntilRehashed(served: ServiceProcess, token: string, link: Link): Promise<void> {
  for (let tries = 0; tries < TRIES_MAX && !(await isRehashed(link)); tries += 1) {
    expect(await signIn(served, token, link)).toBe(201);
    await Bun.sleep(REHASH_MS);
  }
}

/** Signs in each link until it is rehashed. */
async function signInAll(links: readonly Link[]): Promise<void> {
  const served = await start();
  const token = await served.token();
  for (const link of links) expect(await signIn(served, token, link)).toBe(201);
  for (const link of links) if (!link.isCut) await signInUntilRehashed(served, token, link);
  await served.running.stop();
  outputs.push(served.running.output());
}

test(`a link has its old hash or the new one wherever the service is killed after a sign-in (seed ${seed})`, async () => {
  const links = await createLinks();
  let interrupted = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const [first, target] = links.slice(2 * round) as [Link, Link];
    // Each round kills later than the one before: the first ones interrupt the hash on a fast machine as well.
    const part = (round + chance()) / ROUNDS;
    await killAfterSignIn(first, target, part * (KILL_MS_MAX[round % 2] ?? 0));
    await expectWhole([first, target]);
    if (!(await isRehashed(target))) interrupted += 1;
    // With the write-ahead log as the kill left it.
    if (round % 10 === 0) await expectNoPlaintext(target);
  }
  expect(interrupted).toBeGreaterThan(links.filter(({ isCut }) => isCut).length);
  await signInAll(links);
  await expectWhole(links);
  const rehashed = links.filter(({ isCut }) => !isCut).map(({ info }) => String(info));
  const entries = await db.engine.log.entries(NIL_UUID, 0, 100 * LINKS);
  const logged = entries.filter(({ columns }) => columns.action === 'password.rehashed');
  expect(logged.map(({ columns }) => String(columns.object)).sort()).toEqual(rehashed.sort());
  await db.engine.close();
  await verifyCleanRecords(database);
  await expectNoPlaintext(links.at(-1) as Link);
  const output = outputs.join('');
  const secrets = [...links.flatMap((link) => [link.username, ...formsOf(link.password)]), ...tokens];
  expect(secrets.filter((text) => output.includes(text))).toEqual([]);
  expect(output).toContain('listening on');
});
