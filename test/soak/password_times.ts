import { randomBytes } from 'node:crypto';
import { openSignerKeys } from '../../src/access/keys/signer_keys.ts';
import type { OpenDatabase } from '../../src/app/open_database.ts';
import { signerKeyId } from '../../src/model/imported_hash.ts';
import { hashKind, unpadded } from '../../src/model/password_hash.ts';
import { foldedKey } from '../../src/model/text/folded_key.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openDecoys } from '../../src/sign_in/decoys.ts';
import { shuffled } from '../support/random.ts';
import {
  ACCOUNT_TOKENS,
  createPassword,
  DEVICE_HEADER,
  type PasswordFixture,
  passwordBody,
} from '../support/sign_in.ts';
import { type Attempt, freshAddress, post, type Send, sendAll } from './response_times.ts';
import { drawUsernames, forEachAtOnce, type Preparation, type PrepareCall } from './timed_call.ts';

/**
 * Wrong passwords, for known and unknown usernames (docs/guides/password-guessing.md#time). A profile has passwords with six
 * kinds of hashes. Two comparisons together leave a caller nothing:
 *
 * - The known names of each kind with the unknown names whose decoy is of that kind, which shows that a decoy takes as long as the
 *   hash that it imitates. The kind of a name is no secret: the time of both shows it. So the unknown names as a whole are
 *   not compared with one kind; the difference would be that between the kinds.
 * - All known names with all unknown ones, which shows that the unknown ones are spread over the kinds as the known ones are.
 *
 * The right passwords of disabled users are compared with the wrong ones of unknown names.
 *
 * The hashes cost little, so that they hide no other difference. Responses to throttled requests are compared in the same way.
 * The secret of the installation, from which decoys are drawn, is another one in every run.
 */
interface PasswordCall {
  /** Of the response to a wrong password. */
  readonly status: number;
  path(fixture: PasswordFixture): string;
  body(fixture: PasswordFixture): object;
}

const CHECK: PasswordCall = {
  status: 200,
  path: ({ realm, profile }) => `/v2/authentication-realms/${realm}/password-profiles/${profile}/check`,
  body: ({ username, password }) => ({ data: { type: 'password_check', username, password } }),
};
const TOKENS: PasswordCall = { status: 400, path: () => ACCOUNT_TOKENS, body: passwordBody };

export const PASSWORD_CALLS = { check: timesOf(CHECK), tokens: timesOf(TOKENS) };

/** Of a Firebase project; another one in every run. */
const SIGNER_KEY = randomBytes(64);

/** Names whose hashes are of one kind. */
interface NameKind {
  readonly kind: string;
  /** As hashes that were made here. */
  readonly isNormalised?: boolean;
  readonly make: (password: string) => string;
}

/** Whose hashes are of a password that is known. */
const KINDS_OF_PASSWORDS: readonly NameKind[] = [
  {
    kind: 'argon2id',
    isNormalised: true,
    make: ofBun({ algorithm: 'argon2id', memoryCost: 64, timeCost: 2 }),
  },
  { kind: 'argon2i', make: ofBun({ algorithm: 'argon2i', memoryCost: 256, timeCost: 3 }) },
  { kind: 'bcrypt', make: ofBun({ algorithm: 'bcrypt', cost: 4 }) },
];

const KINDS: readonly NameKind[] = [
  ...KINDS_OF_PASSWORDS,
  { kind: 'pbkdf2', make: ofKey('$pbkdf2-sha512$i=500,l=64$') },
  { kind: 'scrypt', make: ofKey('$scrypt$ln=8,r=8,p=1$') },
  { kind: 'firebase', make: ofKey(`$scrypt$ln=7,r=8,p=1,k=${signerKeyId(SIGNER_KEY)}$`) },
];

function ofBun(algorithm: Bun.Password.Argon2Algorithm | Bun.Password.BCryptAlgorithm): NameKind['make'] {
  return (password) => Bun.password.hashSync(password, algorithm);
}

/** A hash of no known password: all passwords are wrong, and each is compared in the same time. */
function ofKey(beforeSalt: string): NameKind['make'] {
  return () => `${beforeSalt}${unpadded(randomBytes(16))}$${unpadded(randomBytes(64))}`;
}

/** The kinds by that part of their hashes which a decoy has as well. */
const KIND_OF = new Map(KINDS.map(({ kind, make }) => [hashKind(make('any')), kind]));

/** NFKC changes the second, so that imported hashes are compared twice; bcrypt reads 72 bytes, so that it compares the third twice. */
const WRONG_PASSWORDS = {
  plain: 'wrong horse battery staple',
  ligature: 'wrong ﬁne battery staple',
  '73 bytes': 'wrong horse battery staple '.padEnd(73, 'x'),
};
type Label = keyof typeof WRONG_PASSWORDS;
const LABELS = Object.keys(WRONG_PASSWORDS) as Label[];
/** Those of disabled users, compared in as many ways. */
const rightPassword = (label: Label) => WRONG_PASSWORDS[label].replace('wrong', 'right');

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
  /** That of its hash, or of its decoy; undefined for a disabled user. */
  readonly kind: string | undefined;
}

interface Guess extends Attempt, Name {
  readonly password: string;
  readonly device?: string;
}

function timesOf(call: PasswordCall): PrepareCall {
  return async (preparation) => {
    const { db, realm, names: namesOfKind, comparisons, chance } = preparation;
    const fixture = await createPassword(db, realm, { hash: undefined });
    const usernames = drawUsernames((2 * KINDS.length + LABELS.length) * namesOfKind, chance);
    await openSignerKeys(db.engine.access, db.keyring, systemClock).add(SIGNER_KEY);
    const known = await createNames(db, fixture, usernames.splice(0, KINDS.length * namesOfKind));
    const disabled = new Map<Label, readonly Name[]>();
    for (const label of LABELS)
      disabled.set(label, await createNames(db, fixture, usernames.splice(0, namesOfKind), label));
    const names = [...known, ...(await kindsOfDecoys(preparation, fixture, usernames))];
    return {
      flags: ['--offline'],
      async open({ url, tokens: { signIn: token } }) {
        const send: Send<Guess> = (guess) => {
          const { username, password, device } = guess;
          const headers = device === undefined ? {} : { [DEVICE_HEADER]: device };
          const body = call.body({ ...fixture, username, password });
          return post({ url, token }, call.path(fixture), { attempt: guess, body, headers });
        };
        return async (load) => {
          for (const label of LABELS) {
            const guessing = (password: string) => (name: Name) => ({
              ...name,
              password,
              address: freshAddress(),
            });
            const guesses = names.map(guessing(WRONG_PASSWORDS[label]));
            const ofDisabled = (disabled.get(label) ?? []).map(guessing(rightPassword(label)));
            const answers = await sendAll(shuffled([...guesses, ...ofDisabled], chance), send);
            comparisons.expectOneResponse(load, answers, call.status);
            for (const { kind } of KINDS) {
              const ofKind = answers.filter((answer) => answer.kind === kind);
              comparisons.compareTimes([load, label, kind], ofKind);
            }
            const enabled = answers.filter(({ kind }) => kind !== undefined);
            comparisons.compareTimes([load, label, 'all'], enabled);
            const refused = answers.filter(({ kind }) => kind === undefined);
            const unknown = answers.filter(({ isKnown }) => !isKnown);
            comparisons.compareTimes([load, label, 'disabled'], [...refused, ...unknown]);
          }
          for (const [label, more] of Object.entries(THROTTLED)) {
            const throttled = await throttledGuesses(shuffled(names, chance), send, more);
            const answers = await sendAll(shuffled(throttled, chance), send);
            comparisons.compareThrottled([load, label], answers);
          }
        };
      },
    };
  };
}

/** The kind of each unknown name, as the service draws it. */
async function kindsOfDecoys(
  { db: { engine, logKeys }, cost }: Preparation,
  { realm: realmId, profile: profileId }: PasswordFixture,
  usernames: readonly string[],
): Promise<readonly Name[]> {
  const { credentials } = engine;
  const decoys = openDecoys({ credentials, keys: logKeys, cost, clock: systemClock });
  return Promise.all(
    usernames.map(async (username) => {
      const { hash } = await decoys.find({ realmId, profileId, usernameKey: foldedKey(username) });
      const kind = KIND_OF.get(hashKind(hash)) as string;
      return { username, isKnown: false, kind };
    }),
  );
}

/** Creates a user with a password for each username, of each kind in turn; disabled ones, whose right password is that of a label. */
async function createNames(
  db: OpenDatabase,
  { realm, profile }: PasswordFixture,
  usernames: readonly string[],
  ofDisabled?: Label,
): Promise<readonly Name[]> {
  const isDisabled = ofDisabled !== undefined;
  const kinds = isDisabled ? KINDS_OF_PASSWORDS : KINDS;
  const kindAt = (at: number) => kinds[at % kinds.length] as NameKind;
  await forEachAtOnce([...usernames.entries()], ([at, username]) => {
    const { make, isNormalised = false } = kindAt(at);
    const hash = make(rightPassword(ofDisabled ?? 'plain'));
    return createPassword(db, realm, { profile, username, hash, isNormalised, isDisabled });
  });
  const kindOf = (at: number) => (isDisabled ? undefined : kindAt(at).kind);
  return usernames.map((username, at) => ({ username, isKnown: true, kind: kindOf(at) }));
}

/** Exhausts the budget of some names at one address each. Returns the guesses that are throttled then. */
async function throttledGuesses(
  names: readonly Name[],
  send: Send<Guess>,
  more: Pick<Guess, 'device'>,
): Promise<readonly Guess[]> {
  const guesses = [true, false]
    .flatMap((isKnown) => names.filter((name) => name.isKnown === isKnown).slice(0, THROTTLED_NAMES))
    .map((name) => ({ ...name, password: WRONG_PASSWORDS.plain, address: freshAddress(), ...more }));
  const repeated = (count: number) => new Array(count).fill(guesses).flat() as typeof guesses;
  await sendAll(repeated(CHECKED_OF_NAME), send);
  return repeated(THROTTLED_REQUESTS);
}
