import { type OverloadCause, overloaded } from '../model/fault.ts';
import { LIMITS } from '../model/limits.ts';
import type { CheckRequest, PasswordCheck } from '../model/password_hash.ts';
import { foldedKey } from '../model/text/folded_key.ts';
import { NEVER_STORED } from '../model/text/text.ts';
import type { SignInAttempt, SignInBudgets, ThrottledSignIn } from './budgets.ts';
import type { CheckedPassword } from './credentials.ts';
import type { Decoy, Decoys } from './decoys.ts';
import type { DeviceTokens } from './device_token.ts';
import type { SignInQueue } from './queue.ts';
import type { Credential, CredentialStore } from './store/credentials.ts';

/** A username and a password to check, in a profile that exists. */
export interface PasswordCheckRequest extends Omit<SignInAttempt, 'usernameKey' | 'device'> {
  readonly username: string;
  readonly password: string;
  /** As the caller sent it. */
  readonly deviceToken: string | undefined;
}

/** The outcome of a password check. `wrong` says nothing about whether the username exists. */
export type PasswordCheckOutcome =
  | { readonly kind: 'right'; readonly credential: Credential; readonly deviceToken: string }
  | { readonly kind: 'wrong' }
  | ({ readonly kind: 'throttled' } & ThrottledSignIn);

/**
 * Checks passwords within the budgets (docs/guides/password-guessing.md). Rejects with Fault `overloaded`, without a check,
 * if the queue is full, and with `unavailable`.
 */
export type CheckPassword = (request: PasswordCheckRequest) => Promise<PasswordCheckOutcome>;

export interface PasswordCheckDeps {
  readonly credentials: Pick<CredentialStore, 'find'>;
  readonly devices: DeviceTokens;
  readonly budgets: Pick<SignInBudgets, 'admit' | 'countWrong'>;
  readonly queue: Pick<SignInQueue, 'run'>;
  readonly decoys: Decoys;
  /** The signer key that a hash of Firebase names. */
  readonly findSignerKey: (hash: string) => Promise<string | undefined>;
  readonly compare: (request: CheckRequest) => Promise<PasswordCheck>;
  /** Called with a right password, which is not waited for. */
  readonly rehash: (checked: CheckedPassword) => void;
}

interface Comparison {
  readonly credential: Credential | undefined;
  readonly decoy: Decoy;
  readonly password: string;
}

/** Attempts of a process whose budgets and credentials are being read: more would fill the memory while a database is slow. */
const PREPARING_MAX = 256;

const WRONG: PasswordCheckOutcome = Object.freeze({ kind: 'wrong' });

/**
 * Creates the check. Its steps are the same for a username that exists and for one that does not: profile and shape were checked before;
 * then device, budgets, credential, version of the device, queue, budgets again, hash, count.
 */
export function openPasswordCheck(deps: PasswordCheckDeps): CheckPassword {
  const { credentials, devices, budgets, queue, decoys } = deps;

  /** False if the password was changed, or its user disabled or deleted, while the attempt waited. */
  async function isCurrent(checked: Credential, { realmId, profileId, usernameKey }: SignInAttempt) {
    const now = await credentials.find(realmId, profileId, usernameKey);
    return now?.infoId === checked.infoId && now.version === checked.version;
  }

  /** In its turn, after the attempts that were in the queue before: their outcomes may have exhausted a budget. */
  async function checkInTurn(
    queued: SignInAttempt,
    { credential, decoy, password }: Comparison,
  ): Promise<PasswordCheckOutcome> {
    const attempt = await budgets.admit(queued);
    if ('retryAfterS' in attempt) return { kind: 'throttled', ...attempt };
    const { hash, isNormalised = false } = credential ?? {};
    const compared = hash === undefined ? decoy : { hash, isNormalised };
    const signerKey = await deps.findSignerKey(compared.hash);
    const check = await deps.compare({ ...compared, password, signerKey }).catch(async (error) => {
      // A wrong password takes longest, so that a check which ends too late tells that it is wrong.
      if (mayHaveBegun(error)) await budgets.countWrong(attempt);
      throw error;
    });
    if (!credential || hash === undefined || !check.isRight || !(await isCurrent(credential, attempt))) {
      await budgets.countWrong(attempt);
      return WRONG;
    }
    deps.rehash({ credential, password, check });
    return { kind: 'right', credential, deviceToken: devices.make(attempt, credential.version) };
  }

  /** What the queue needs of an attempt; or that a budget refuses it, before its credential is read: a refusal takes no longer for a known name. */
  async function prepare({ username, password, deviceToken, ...request }: PasswordCheckRequest) {
    const name = { ...request, usernameKey: foldedKey(username) };
    const device = devices.verify(deviceToken ?? '', name);
    let admitted = await budgets.admit({ ...name, device });
    if ('retryAfterS' in admitted) return admitted;
    const credential = await credentials.find(name.realmId, name.profileId, name.usernameKey);
    if (admitted.device && admitted.device.version !== credential?.version) {
      admitted = await budgets.admit({ ...admitted, device: undefined });
      if ('retryAfterS' in admitted) return admitted;
    }
    // Also for a credential with a hash: the first request of a profile waits for it.
    const decoy = await decoys.find(admitted);
    return { admitted, comparison: { credential, decoy, password } };
  }

  let preparing = 0;
  return async (request) => {
    if (!isPossible(request.username, request.password)) return WRONG;
    if (preparing >= PREPARING_MAX) throw overloaded('QUEUE_FULL');
    preparing += 1;
    const prepared = await prepare(request).finally(() => {
      preparing -= 1;
    });
    if ('retryAfterS' in prepared) return { kind: 'throttled', ...prepared };
    const { admitted, comparison } = prepared;
    return queue.run(admitted, () => checkInTurn(admitted, comparison));
  };
}

/** Causes of an overload before a worker has read the password: then the attempt takes from no budget. */
const BEFORE_CHECK: ReadonlySet<unknown> = new Set<OverloadCause>([
  'QUEUE_FULL',
  'DEADLINE_EXCEEDED',
  'WORKER_START_TIMEOUT',
  'WORKER_START_FAILED',
]);

function mayHaveBegun(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? {}) as { readonly code?: unknown };
  return !BEFORE_CHECK.has(code);
}

/** Whether a record may have this username and this password. If not, they are wrong without a check. */
function isPossible(username: string, password: string): boolean {
  const isName =
    username.length <= 2 * USERNAME_CHARACTERS_MAX && [...username].length <= USERNAME_CHARACTERS_MAX;
  const isPassword = password !== '' && Buffer.byteLength(password) <= LIMITS.passwordBytesMax;
  return isName && isPassword && !NEVER_STORED.test(username) && password.isWellFormed();
}

/** Of a stored username (docs/wire.md#text-values). */
const USERNAME_CHARACTERS_MAX = 255;
