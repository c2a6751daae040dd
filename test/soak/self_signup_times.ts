import { ACCOUNT_TOKENS, createPassword, enableSelfSignup, selfSignupBody } from '../support/sign_in.ts';
import { type Attempt, freshAddress, post, type Send, statusOf } from './response_times.ts';
import { drawUsernames, forEachAtOnce, type Preparation, type TimedCall } from './timed_call.ts';

/**
 * Self-signups with taken (`known`) and free usernames. Within its budget a sign-up shows that a username is taken, which could not be hidden
 * without mail (docs/wire.md#account-tokens). One that is throttled, that is invalid, or by a client without the scope shows nothing.
 */
export const SELF_SIGNUP_CALLS = { self_signup: prepare };

interface SignUp extends Attempt {
  readonly username: string;
}

async function prepare({ db, realm, names, comparisons, chance }: Preparation): Promise<TimedCall> {
  const { profile } = await createPassword(db, realm);
  const usernames = drawUsernames(2 * names + 1, chance);
  /** The name of the only sign-up that succeeds. */
  const signedUp = usernames.pop() as string;
  const taken = usernames.slice(0, names);
  await forEachAtOnce(taken, (username) => createPassword(db, realm, { profile, username, hash: undefined }));
  const attempts = () =>
    usernames.map((username, at) => ({ username, isKnown: at < names, address: freshAddress() }));

  return {
    flags: ['--offline'],
    async open({ url, put, tokens }) {
      await enableSelfSignup({ put }, tokens.signUp);
      const sender =
        (token: string, password = 'correct horse battery staple'): Send<SignUp> =>
        (attempt) => {
          const body = selfSignupBody(profile, attempt.username, { password });
          return post({ url, token }, ACCOUNT_TOKENS, { attempt, body });
        };
      const send = sender(tokens.signUp);
      const tryOnce = (username: string, address: string) => send({ username, isKnown: true, address });
      for (const status of [201, 422]) {
        const answer = await tryOnce(signedUp, freshAddress());
        if (statusOf(answer) !== status) throw new Error(`not ${status}: ${answer.response}`);
      }
      return async (load) => {
        const exhaust = (address: string) => tryOnce(signedUp, address);
        await comparisons.compareExhausted([load, '(429)'], { attempts: attempts(), send }, exhaust);
        const invalid = sender(tokens.signUp, '7 bytes');
        await comparisons.compare([load, 'invalid'], 400, { attempts: attempts(), send: invalid });
        const forbidden = sender(tokens.signIn);
        await comparisons.compare([load, 'no scope'], 403, { attempts: attempts(), send: forbidden });
      };
    },
  };
}
