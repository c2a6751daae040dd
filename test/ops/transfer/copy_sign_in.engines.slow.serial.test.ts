import { expect, setDefaultTimeout, test } from 'bun:test';
import {
  DIRECTIONS,
  freshDatabaseOf,
  newMasterKey,
  runCopy,
  startCopyService,
} from '../../support/copy_fixtures.ts';
import { createSettingsRealms } from '../../support/settings_realms.ts';
import {
  ACCOUNT_TOKEN_HEADER,
  type AccountTokensAnswer,
  createPassword,
  DEVICE_HEADER,
  from,
  openGuesses,
  RENEWAL,
  requestTokens,
  signInTokenOf,
} from '../../support/sign_in.ts';

setDefaultTimeout(300_000);

test.each(DIRECTIONS)(
  'a copy from %s to %s knows the account token, the device token and the wrong passwords of its source',
  async (...[source, target]) => {
    const key = newMasterKey();
    const databases = [await freshDatabaseOf(source, key), await freshDatabaseOf(target, key)] as const;
    const before = await startCopyService(databases[0]);
    const { accounts } = await createSettingsRealms(before.db);
    const jane = await createPassword(before.db, accounts);
    const { guess, signIn } = openGuesses(before, await signInTokenOf(before));
    const signedIn = await signIn(jane, jane.password, from('192.0.2.1'));
    const { data } = (await signedIn.json()) as AccountTokensAnswer;
    const device = signedIn.headers.get(DEVICE_HEADER) ?? '';
    // On a busy machine a check can be counted and end too late: the guess is sent again, and counted twice.
    await guess(jane, 100, (index) => `198.51.100.${index % 10}`);
    await before.stop();

    const copied = await runCopy(...databases);
    expect([copied.stderr, copied.code]).toEqual(['', 0]);
    const after = await startCopyService(databases[1]);
    const token = await signInTokenOf(after);
    const { statusOf } = openGuesses(after, token);
    expect(await statusOf(jane, jane.password, from('192.0.2.1'))).toBe(429);
    const known = from('192.0.2.1', { [DEVICE_HEADER]: device });
    expect([await statusOf(jane, jane.password, known), await statusOf(jane, 'wrong horse', known)]).toEqual([
      201, 400,
    ]);
    const held = { [ACCOUNT_TOKEN_HEADER]: data[0]?.token ?? '' };
    expect((await requestTokens(after, token, RENEWAL, held)).status).toBe(201);
  },
);
