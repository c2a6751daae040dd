import { DEVICE, END_USER_ADDRESS } from '../src/http/operations/password_request.ts';
import { PASSWORD_COSTS, type PasswordCost } from '../src/model/password.ts';
import { hashOf } from '../src/ops/workers/hasher.ts';
import { REALM, userAt } from '../test/support/population.ts';
import { runConcurrently, type SendRequest } from './callers.ts';
import type { RequestTimes } from './load.ts';
import { quantilesOf } from './pgbench.ts';

/** Password checks of imported users, each of another name from another address, so that no budget refuses one. */

const PASSWORD = 'correct horse battery staple';
const WRONG_PASSWORD = 'wrong horse battery staple';

/** The cost of new hashes by default. */
const COST = PASSWORD_COSTS.get('standard') as PasswordCost;
const bcrypt = (cost: number) => Bun.password.hashSync(PASSWORD, { algorithm: 'bcrypt', cost });

const HASHES = {
  own: () => hashOf({ password: PASSWORD, ...COST }),
  bcrypt10: () => bcrypt(10),
  bcrypt12: () => bcrypt(12),
};
export type CheckedHash = keyof typeof HASHES;

export const CHECKED_HASH_TEXTS: Readonly<Record<CheckedHash, string>> = {
  own: `argon2id, ${COST.memoryKib} KiB, ${COST.passes} passes (the default)`,
  bcrypt10: 'bcrypt, cost 10',
  bcrypt12: 'bcrypt, cost 12',
};

/** Users with a password of each hash: enough that no name has as many wrong passwords as its budget allows. */
const NAMES = 1_000;
/** Of these, users with a device token: more than the places that the queue keeps for them. */
const DEVICES = 20;

/** The profiles of the bench, one for each hash. */
export type CheckedProfiles = Readonly<Record<CheckedHash, string>>;

export function makeCheckedProfiles(): CheckedProfiles {
  const id = () => Bun.randomUUIDv7();
  return { own: id(), bcrypt10: id(), bcrypt12: id() };
}

const usernameOf = (index: number) => `checked${index}@example.com`;

/** The profiles and their users' passwords, as lines for `import` after those of the population. */
export function* checkedLines(profiles: CheckedProfiles): Generator<string> {
  const stamp = new Date(Date.UTC(2026, 0, 1)).toISOString();
  const common = { realm_id: REALM, meta: { created_at: stamp, updated_at: stamp } };
  for (const hash of Object.keys(HASHES) as CheckedHash[]) {
    const profile = profiles[hash];
    yield JSON.stringify({ type: 'password_profile', ...common, id: profile, name: `Passwords ${hash}` });
    const password_hash = HASHES[hash]();
    for (let index = 0; index < NAMES; index += 1)
      yield JSON.stringify({
        type: 'user_authentication_password_profile_info',
        ...common,
        ...{ id: Bun.randomUUIDv7(), user_authentication_info_id: userAt(index).user },
        ...{ username: usernameOf(index), password_profile_id: profile, password_hash },
      });
  }
}

/** Checks in an interval. */
export interface CheckTimes extends Pick<RequestTimes, 'p50' | 'p99'> {
  /** Responses that arrived, without those with status 503. */
  readonly perSecond: number;
  /** Of the checks that were in flight: with a result, and with status 503. */
  readonly answered: number;
  readonly refused: number;
}

interface SentCheck {
  readonly sentAt: number;
  readonly answeredAt: number;
  readonly isRefused: boolean;
}

/** Sends checks to one profile. */
export interface CheckSender {
  /** A wrong password of the next name. */
  readonly sendWrong: SendRequest;
  /** A right password of the next name with a device token. */
  readonly sendFromDevice: SendRequest;
  /** Signs every device in. Needed once before `sendFromDevice`. */
  registerDevices(): Promise<void>;
  /** The time of the next response that is not 503. */
  nextAnswer(): Promise<number>;
  /** Of the interval between two times. Leaves out checks without a response so far. */
  times(from: number, to: number): CheckTimes;
}

interface CheckTarget {
  readonly url: string;
  readonly token: string;
  readonly profile: string;
}

let addresses = 0;

/** The next of the 16 million addresses of a network. */
function nextAddress(): string {
  addresses += 1;
  return `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`;
}

export function openCheckSender({ url, token, profile }: CheckTarget): CheckSender {
  const path = `${url}/v2/authentication-realms/${REALM}/password-profiles/${profile}/check`;
  const sent: SentCheck[] = [];
  const devices: string[] = [];
  const counts = { wrong: 0, device: 0 };
  let answer = Promise.withResolvers<number>();

  async function post(username: string, password: string, device: Record<string, string> = {}) {
    const sentAt = performance.now();
    const response = await fetch(path, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        [END_USER_ADDRESS]: nextAddress(),
        ...device,
      },
      body: JSON.stringify({ data: { type: 'password_check', username, password } }),
    });
    const text = await response.text();
    const isRefused = response.status === 503;
    if (!response.ok && !isRefused) throw new Error(`a check returned ${response.status}: ${text}`);
    const answeredAt = performance.now();
    sent.push({ sentAt, answeredAt, isRefused });
    if (isRefused) return undefined;
    answer.resolve(answeredAt);
    answer = Promise.withResolvers();
    return (JSON.parse(text) as { data: { verified: boolean; device?: string } }).data;
  }

  async function expectAnswer(isRight: boolean, response: ReturnType<typeof post>): Promise<boolean> {
    const data = await response;
    if (data && data.verified !== isRight) throw new Error(`a check returned verified: ${data.verified}`);
    return data !== undefined;
  }

  return {
    sendWrong() {
      counts.wrong += 1;
      const username = usernameOf(DEVICES + (counts.wrong % (NAMES - DEVICES)));
      return expectAnswer(false, post(username, WRONG_PASSWORD));
    },
    sendFromDevice() {
      counts.device += 1;
      const index = counts.device % DEVICES;
      return expectAnswer(true, post(usernameOf(index), PASSWORD, { [DEVICE]: devices[index] as string }));
    },
    async registerDevices() {
      const stop = new AbortController();
      const register: SendRequest = async () => {
        const data = await post(usernameOf(devices.length), PASSWORD);
        if (data?.device) devices.push(data.device);
        if (devices.length === DEVICES) stop.abort();
        return data !== undefined;
      };
      await runConcurrently(1, register, stop.signal);
    },
    nextAnswer: () => answer.promise,
    times(from, to) {
      const inFlight = sent.filter(({ sentAt, answeredAt }) => sentAt <= to && answeredAt > from);
      const answered = inFlight.filter(({ isRefused }) => !isRefused);
      const arrived = answered.filter(({ answeredAt }) => answeredAt <= to);
      return {
        perSecond: arrived.length / ((to - from) / 1_000),
        answered: answered.length,
        refused: inFlight.length - answered.length,
        ...quantilesOf(answered.map(({ sentAt, answeredAt }) => answeredAt - sentAt)),
      };
    },
  };
}

/** Callers without a device, and with one: together more than the queue has places, and of each kind more than it keeps for them. */
const FULL_QUEUE = { strangers: 60, devices: DEVICES };

/** Keeps the queue full. Resolves with the last response. */
export async function fillQueue(checks: CheckSender, stop: AbortSignal): Promise<void> {
  await Promise.all([
    runConcurrently(FULL_QUEUE.strangers, checks.sendWrong, stop),
    runConcurrently(FULL_QUEUE.devices, checks.sendFromDevice, stop),
  ]);
}
