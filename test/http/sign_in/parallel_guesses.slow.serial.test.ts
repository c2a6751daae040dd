import { afterAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OVERLOAD_CAUSES } from '../../../src/model/fault.ts';
import { parseIpAddress } from '../../../src/model/ip_address.ts';
import { foldedKey } from '../../../src/model/text/folded_key.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { openSignInBudgets } from '../../../src/sign_in/budgets.ts';
import { openFreshDatabase } from '../../support/database.ts';
import { movableClock } from '../../support/movable_clock.ts';
import { errorsOf } from '../../support/service.ts';
import { type ServiceProcess, serveWithClient } from '../../support/service_process.ts';
import { createSettingsRealms } from '../../support/settings_realms.ts';
import {
  createPassword,
  createSignInClient,
  from,
  type PasswordFixture,
  passwordBody,
  requestTokens,
} from '../../support/sign_in.ts';

/** Budgets of two services over one database that check passwords at once: docs/guides/password-guessing.md#budgets. */

setDefaultTimeout(300_000);

const GUESSES = 64;

const { database, db } = await openFreshDatabase();
const { accounts } = await createSettingsRealms(db);
const { clientId, secret } = await createSignInClient({ db, clock: movableClock() });
const client = { client_id: clientId, client_secret: secret };
// One base URL, so that an access token is valid at both.
const flags = ['--offline', '--base-url', 'https://idp.example'];
const processes = [
  await serveWithClient(database, client, flags),
  await serveWithClient(database, client, flags),
];
const token = (await processes[0]?.token()) ?? '';
afterAll(async () => {
  await Promise.all(processes.map(({ running }) => running.stop()));
  await db.engine.close();
});

/** A wrong password, by the name and the address of the guess of this number. */
interface Budget {
  readonly size: number;
  readonly refillMs: number;
  readonly nameOf: (index: number) => string;
  readonly addressOf: (index: number) => string;
  /** Wrong passwords before: as many as one process checks in many seconds. */
  readonly before: number;
}

const BUDGETS: readonly (readonly [string, Budget])[] = [
  [
    'one name from one address',
    { size: 10, refillMs: 90_000, nameOf: () => 'jane', addressOf: () => '192.0.2.1', before: 0 },
  ],
  [
    'one name from many addresses',
    {
      ...{ size: 100, refillMs: 600_000, nameOf: () => 'john', addressOf: (index) => `198.51.100.${index}` },
      before: 95,
    },
  ],
  [
    'many names from one address',
    {
      ...{ size: 100, refillMs: 9_000, nameOf: (index) => `user${index}`, addressOf: () => '192.0.2.2' },
      before: 95,
    },
  ],
];

test.each(BUDGETS)(
  '64 parallel wrong passwords of %s exceed the budget by 2 at most on two services',
  async (_, { size, refillMs, nameOf, addressOf, before }) => {
    // Slow enough that both services check one at the same time.
    const hash = Bun.password.hashSync('right', { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 });
    const jane = await createPassword(db, accounts, { username: nameOf(0), hash });
    const startedAt = performance.now();
    const budgets = openSignInBudgets(db.engine.budgets, db.logKeys, systemClock);
    for (let index = GUESSES; index < GUESSES + before; index += 1) {
      const name = { realmId: accounts, profileId: jane.profile, usernameKey: foldedKey(nameOf(index)) };
      const address = parseIpAddress(addressOf(index));
      await budgets.countWrong({ ...name, address, clientId: 'shop', device: undefined });
    }
    const outcomes = await Promise.all(
      Array.from({ length: GUESSES }, (_, index) =>
        guess(
          processes[index % processes.length] as ServiceProcess,
          { ...jane, username: nameOf(index) },
          addressOf(index),
        ),
      ),
    );
    const refilled = Math.floor((performance.now() - startedAt) / refillMs);
    const checked = outcomes.filter(({ status }) => status === 400).length;
    // On a busy machine some checks end too late; they count as well.
    const late = outcomes.reduce((sum, { lateChecks }) => sum + lateChecks, 0);
    expect(checked + late).toBeGreaterThanOrEqual(size - before);
    expect(checked).toBeLessThanOrEqual(size - before + processes.length + refilled);
    expect(outcomes.filter(({ status }) => status === 429)).toHaveLength(GUESSES - checked);
  },
);

/** Sends a wrong password until there is a place in the queue for it, and the check ends in time. */
async function guess({ withoutRetry }: ServiceProcess, of: PasswordFixture, address: string) {
  const body = passwordBody(of, { password: 'wrong horse' });
  for (let lateChecks = 0; ; ) {
    const answer = await requestTokens(withoutRetry, token, body, from(address));
    if (answer.status !== 503) return { status: answer.status, lateChecks };
    const [error] = await errorsOf(answer);
    if (error?.detail === OVERLOAD_CAUSES.WORKER_TIMEOUT) lateChecks += 1;
    await Bun.sleep(100);
  }
}
