import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { median } from '../../bench/load.ts';
import { createClient } from '../../src/access/clients/clients.ts';
import { type OpenDatabase, openDatabase } from '../../src/app/open_database.ts';
import type { PasswordCost } from '../../src/model/password.ts';
import { foldedKey } from '../../src/model/text/folded_key.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openDecoys } from '../../src/sign_in/decoys.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { RUN_FOLDER } from '../support/folder.ts';
import { endServers } from '../support/postgres_server.ts';
import { freshSeed, seededRandom, shuffled } from '../support/random.ts';
import { isOverloaded, sendWithRetry } from '../support/retry.ts';
import { comparableResponse } from '../support/service.ts';
import { type ServiceProcess, serveWithClient } from '../support/service_process.ts';
import { createSettingsRealms } from '../support/settings_realms.ts';
import {
  ACCOUNT_TOKENS,
  createPassword,
  DEVICE_HEADER,
  from,
  type PasswordFixture,
  passwordBody,
} from '../support/sign_in.ts';
import type { LoadPlan } from './load_process.ts';

/**
 * Whether a caller can tell from the response to a wrong password that a username exists
 * (docs/decisions/0024-sign-in-by-password.md#time). A profile has passwords with three kinds of hashes. Wrong passwords for its
 * usernames and for as many unknown ones are sent one at a time in random order; bodies and headers must be the same. The times
 * are compared by the area under the ROC curve (AUC): the share of pairs in which the known name took longer, 0.5 if the
 * times do not differ. Two comparisons together leave a caller nothing:
 *
 * - The known names of each kind with the unknown names whose decoy is of that kind, which shows that a decoy takes as long as the
 *   hash that it imitates. The kind of a name is no secret: the time of both shows it. So the unknown names as a whole are
 *   not compared with one kind; the difference would be that between the kinds.
 * - All known names with all unknown ones, which shows that the unknown ones are spread over the kinds as the known ones are.
 *
 * The hashes cost little, so that they hide no other difference. Responses to throttled requests are compared in the same way.
 * The seed decides names and order; the secret of the installation, from which decoys are drawn, is another one in every run.
 */
const AUC_MIN = 0.45;
const AUC_MAX = 0.55;

const { values: options } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite' },
    call: { type: 'string', default: 'check' },
    /** Known names of each kind. With 1,000 the standard error of an AUC is 0.013. */
    names: { type: 'string', default: '1000' },
    /** What the service does meanwhile. */
    load: { type: 'string', multiple: true, default: ['none', 'lookups'] },
    seed: { type: 'string' },
  },
});

interface PasswordCall {
  /** Of the response to a wrong password. */
  readonly status: number;
  path(fixture: PasswordFixture): string;
  body(fixture: PasswordFixture): object;
}

/** The requests that check a password. */
const CALLS: Readonly<Record<string, PasswordCall>> = {
  check: {
    status: 200,
    path: ({ realm, profile }) => `/v2/authentication-realms/${realm}/password-profiles/${profile}/check`,
    body: ({ username, password }) => ({ data: { type: 'password_check', username, password } }),
  },
  tokens: { status: 400, path: () => ACCOUNT_TOKENS, body: passwordBody },
};
const call = CALLS[options.call] as PasswordCall;
if (!call) {
  console.error(`--call must be one of ${Object.keys(CALLS).join(', ')}`);
  process.exit(2);
}
const namesOfKind = Number(options.names);
const seed = Number(options.seed ?? freshSeed());
const chance = seededRandom(seed);
console.log(`seed ${seed}`);

const LOOKUPS_PER_SECOND = 1_000;
const KINDS = [
  { kind: 'argon2id', prefix: '$argon2id$', isNormalised: true, memoryCost: 64, timeCost: 2 },
  { kind: 'argon2i', prefix: '$argon2i$', isNormalised: false, memoryCost: 256, timeCost: 3 },
  { kind: 'bcrypt', prefix: '$2', isNormalised: false, cost: 4 },
] as const;
type Kind = (typeof KINDS)[number]['kind'];

/** NFKC changes the second, so that imported hashes are compared twice; bcrypt reads 72 bytes, so that it compares the third twice. */
const WRONG_PASSWORDS = {
  plain: 'wrong horse battery staple',
  ligature: 'wrong ﬁne battery staple',
  '73 bytes': 'wrong horse battery staple '.padEnd(73, 'x'),
};

/** Users that are created concurrently. */
const CREATED_AT_ONCE = 100;
/** Names that are throttled, known ones and as many unknown, and requests for each of them. */
const THROTTLED_NAMES = 50;
const THROTTLED_REQUESTS = 20;
/** Throttled requests, without a device token and with one that is not genuine. */
const THROTTLED = { '(429)': {}, device: { device: 'A'.repeat(86) } };
/** Wrong passwords of one name from one address that are checked. */
const CHECKED_OF_NAME = 10;

interface Name {
  readonly username: string;
  readonly isKnown: boolean;
  /** That of its hash, or of its decoy. */
  readonly kind: Kind;
}

interface Prepared {
  readonly client: { readonly client_id: string; readonly client_secret: string };
  readonly fixture: PasswordFixture;
  readonly names: readonly Name[];
}

interface Attempt {
  readonly name: Name;
  readonly password: keyof typeof WRONG_PASSWORDS;
  readonly address: string;
  readonly device?: string;
}

interface Answer extends Attempt {
  readonly ms: number;
  readonly response: string;
}

let addressCount = 0;
const aucs: number[] = [];
const complaints: string[] = [];
try {
  const database = await freshDatabase(options.engine);
  const { client, fixture, names } = await prepare(database);
  const served = await serveWithClient(database, client, ['--offline']);
  try {
    const token = await served.token();
    const send = requestSender(served.url, token, fixture);
    printRow(['load', 'password', 'names', 'known ms', 'unknown ms', 'AUC']);
    for (const load of options.load) {
      const end = load === 'none' ? undefined : await startLookups(served, token, fixture);
      await measure(load, names, send);
      end?.();
    }
  } finally {
    await served.running.stop();
  }
} finally {
  await endServers();
  rmSync(RUN_FOLDER, { recursive: true, force: true });
}
const outside = aucs.filter((auc) => !(auc >= AUC_MIN && auc <= AUC_MAX)).length;
for (const complaint of complaints) console.log(complaint);
console.log(
  `${options.engine}, ${options.call}: ${aucs.length} comparisons, AUC ${Math.min(...aucs).toFixed(3)} to ` +
    `${Math.max(...aucs).toFixed(3)}, ${outside} outside ${AUC_MIN} to ${AUC_MAX}, ${complaints.length} complaints, seed ${seed}`,
);
process.exitCode = aucs.length > 0 && outside === 0 && complaints.length === 0 ? 0 : 1;

/** Creates the account realm, a client, and users with passwords; draws names that no user has. */
async function prepare(database: TestDatabase): Promise<Prepared> {
  const settings = database.settings();
  const db = await openDatabase(settings, systemClock);
  try {
    const { accounts } = await createSettingsRealms(db);
    const rights = {
      scopes: new Set(['sign-in', 'users:read'] as const),
      realms: '*',
      endUserAddress: 'header',
    } as const;
    const { client, secret } = await createClient(db.engine.access, 'sign-in', rights, systemClock);
    const fixture = await createPassword(db, accounts, { hash: undefined });
    const usernames = drawUsernames(2 * KINDS.length * namesOfKind);
    const known = await createNames(db, fixture, usernames.splice(0, KINDS.length * namesOfKind));
    const unknown = await kindsOfDecoys(db, fixture, usernames, settings.passwordCost);
    return {
      client: { client_id: client.clientId, client_secret: secret },
      fixture,
      names: [...known, ...unknown],
    };
  } finally {
    await db.engine.close();
  }
}

/** The kind of each unknown name, as the service draws it. */
async function kindsOfDecoys(
  { engine: { credentials }, logKeys }: OpenDatabase,
  { realm: realmId, profile: profileId }: PasswordFixture,
  usernames: readonly string[],
  cost: PasswordCost,
): Promise<readonly Name[]> {
  const decoys = openDecoys({ credentials, keys: logKeys, cost, clock: systemClock });
  return Promise.all(
    usernames.map(async (username) => {
      const { hash } = await decoys.find({ realmId, profileId, usernameKey: foldedKey(username) });
      const kind = KINDS.find(({ prefix }) => hash.startsWith(prefix))?.kind as Kind;
      return { username, isKnown: false, kind };
    }),
  );
}

/** Different usernames of one length. */
function drawUsernames(count: number): string[] {
  const numbers = new Set<number>();
  while (numbers.size < count) numbers.add(Math.floor(10_000_000 + chance() * 90_000_000));
  return [...numbers].map((number) => `jane-${number}@example.com`);
}

/** Creates a user with a password for each username, of each kind in turn. */
async function createNames(
  db: OpenDatabase,
  { realm, profile }: PasswordFixture,
  usernames: readonly string[],
): Promise<readonly Name[]> {
  const names: Name[] = [];
  for (let at = 0; at < usernames.length; at += CREATED_AT_ONCE) {
    const batch = usernames.slice(at, at + CREATED_AT_ONCE).map(async (username, index) => {
      const {
        kind,
        prefix: _,
        isNormalised,
        ...cost
      } = KINDS[(at + index) % KINDS.length] as (typeof KINDS)[number];
      const hash = Bun.password.hashSync('correct horse battery staple', { algorithm: kind, ...cost });
      await createPassword(db, realm, { profile, username, hash, isNormalised });
      return { username, isKnown: true, kind };
    });
    names.push(...(await Promise.all(batch)));
  }
  return names;
}

type Send = (attempt: Attempt) => Promise<Answer>;

/** Creates the function that sends a wrong password. */
function requestSender(url: string, token: string, fixture: PasswordFixture): Send {
  const path = call.path(fixture);
  const authorization = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  return async (attempt) => {
    const given = { username: attempt.name.username, password: WRONG_PASSWORDS[attempt.password] };
    const body = JSON.stringify(call.body({ ...fixture, ...given }));
    const device = attempt.device === undefined ? {} : { [DEVICE_HEADER]: attempt.device };
    const headers = { ...authorization, ...from(attempt.address), ...device };
    const request = { method: 'POST', headers, body };
    let ms = 0;
    const response = await sendWithRetry(async () => {
      const sentAt = performance.now();
      const received = await fetch(url + path, request);
      ms = performance.now() - sentAt;
      return received;
    }, isOverloaded);
    return { ...attempt, ms, response: await comparableResponse(response) };
  };
}

/** Looks up a user so many times a second in a separate process. Returns the function that ends it. */
async function startLookups(
  { url, get }: ServiceProcess,
  token: string,
  { realm, user }: PasswordFixture,
): Promise<() => void> {
  const path = `/v2/authentication-realms/${realm}/user-authentication-info/${user}`;
  const { status } = await get(path, token);
  if (status !== 200) throw new Error(`the lookup was answered ${status}`);
  const times = { perSecond: LOOKUPS_PER_SECOND, warmUpSeconds: 0, seconds: 86_400 };
  const plan: LoadPlan = { url, token, method: 'GET', path, ...times };
  const script = join(import.meta.dir, 'load_process.ts');
  const child = Bun.spawn([process.execPath, script, JSON.stringify(plan)]);
  return () => {
    if (child.exitCode !== null) complaints.push(`the load process exited with ${child.exitCode}`);
    child.kill();
  };
}

/** An address that no request has had: each network has a budget of its own. */
function freshAddress(): string {
  addressCount += 1;
  return `10.${[16, 8, 0].map((bits) => (addressCount >> bits) & 255).join('.')}`;
}

/** Compares each wrong password of all names, and throttled requests of some. */
async function measure(load: string, names: readonly Name[], send: Send): Promise<void> {
  for (const password of Object.keys(WRONG_PASSWORDS) as (keyof typeof WRONG_PASSWORDS)[]) {
    const attempts = names.map((name) => ({ name, password, address: freshAddress() }));
    const answers = await sendAll(shuffled(attempts, chance), send);
    expectOneResponse(load, answers, call.status);
    for (const { kind } of KINDS) {
      const ofKind = answers.filter(({ name }) => name.kind === kind);
      compare([load, password, kind], ofKind);
    }
    compare([load, password, 'all'], answers);
  }
  for (const [label, more] of Object.entries(THROTTLED)) {
    const throttled = await sendAll(await throttledAttempts(names, send, more), send);
    expectOneResponse(load, throttled.map(withoutWait), 429);
    compare([load, label, 'all'], throttled);
  }
}

/** Exhausts the budget of some names at one address each. */
async function throttledAttempts(
  names: readonly Name[],
  send: Send,
  more: Pick<Attempt, 'device'>,
): Promise<readonly Attempt[]> {
  const chosen = shuffled(names, chance);
  const attempts = [true, false]
    .flatMap((isKnown) => chosen.filter((name) => name.isKnown === isKnown).slice(0, THROTTLED_NAMES))
    .map((name) => ({ name, password: 'plain', address: freshAddress(), ...more }) as const);
  const repeated = (count: number) =>
    shuffled(new Array(count).fill(attempts).flat() as typeof attempts, chance);
  await sendAll(repeated(CHECKED_OF_NAME), send);
  return repeated(THROTTLED_REQUESTS);
}

/** One at a time, so that no request waits for another one. */
async function sendAll(attempts: readonly Attempt[], send: Send): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  for (const attempt of attempts) answers.push(await send(attempt));
  return answers;
}

/** The time until a bucket has a token depends on when it was exhausted. */
function withoutWait(answer: Answer): Answer {
  return { ...answer, response: answer.response.replace(/(?<="retry-after",)"([1-9]|[1-8]\d|90)"/, '') };
}

function expectOneResponse(load: string, answers: readonly Answer[], status: number): void {
  const responses = [...new Set(answers.map(({ response }) => response))];
  if (responses.length > 1 || !responses[0]?.startsWith(`[${status},`))
    complaints.push(`load ${load}: not one response with ${status}: ${responses.slice(0, 3).join(' ')}`);
}

/** Adds and prints a row. */
function compare(labels: readonly string[], answers: readonly Answer[]): void {
  const timesOf = (isKnown: boolean) =>
    answers.filter(({ name }) => name.isKnown === isKnown).map(({ ms }) => ms);
  const [known, unknown] = [timesOf(true), timesOf(false)];
  const auc = areaUnderCurve(known, unknown);
  aucs.push(auc);
  printRow([...labels, median(known).toFixed(2), median(unknown).toFixed(2), auc.toFixed(3)]);
}

/** The share of pairs in which the known name took longer; equal times count half. */
function areaUnderCurve(known: readonly number[], unknown: readonly number[]): number {
  let longer = 0;
  for (const one of known)
    for (const other of unknown) longer += (Number(one > other) + Number(one >= other)) / 2;
  return longer / (known.length * unknown.length);
}

function printRow([load = '', password = '', names = '', ...figures]: readonly string[]): void {
  console.log(
    load.padEnd(9) +
      password.padEnd(10) +
      names.padEnd(10) +
      figures.map((each) => each.padStart(12)).join(''),
  );
}
