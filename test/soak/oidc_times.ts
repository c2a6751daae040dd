import { ACCOUNT_TOKENS } from '../support/sign_in.ts';
import type { Json } from '../support/token_forge.ts';
import { type Person, PROVIDER_FLAGS, startCodeProvider } from './code_provider.ts';
import { type Attempt, freshAddress, post, type Send, statusOf } from './response_times.ts';
import { drawUsernames, forEachAtOnce, type Preparation, type TimedCall } from './timed_call.ts';

/**
 * Sign-ins through a provider that are refused (docs/decisions/0025-sign-in-through-providers.md). A known identity is signed in, and only
 * the person whose it is can prove it: that is no secret. The response must not show what a person did not prove:
 *
 * - That a user has the e-mail address of an identity that may not be created: `known` is the address.
 * - That a user has an identity which an ID token for another request names: `known` is the identity.
 * - The same from an address whose budget is exhausted, where the provider is not asked.
 *
 * With the scope `sign-up` an e-mail address is no secret: that of nobody makes a new user.
 */
export const OIDC_CALLS = { oidc: prepare };

interface Sent extends Attempt {
  readonly claims: Json | undefined;
}

async function prepare({ db, realm, names, comparisons, chance }: Preparation): Promise<TimedCall> {
  const provider = await startCodeProvider(db, realm);
  const emails = drawUsernames(3 * names, chance);
  const personOf = (email: string): Person => ({ email, subject: `auth0|${email}` });
  const known = emails.slice(0, names).map(personOf);
  const unknown = emails.slice(names, 2 * names).map(personOf);
  /** Subjects of no user. */
  const others = emails.slice(2 * names).map((email) => personOf(email).subject);
  await forEachAtOnce(known, provider.createPerson);
  /** An attempt for each person, from an address of its own. */
  const attemptsFor = (claimsOf: (person: Person, at: number) => Json): readonly Sent[] =>
    [known, unknown].flatMap((people) =>
      people.map((person, at) => ({
        ...{ isKnown: people === known, address: freshAddress() },
        claims: { email: person.email, email_verified: true, ...claimsOf(person, at) },
      })),
    );

  return {
    flags: PROVIDER_FLAGS,
    stop: provider.stop,
    async open({ url, put, tokens }) {
      await provider.allowSignIn({ put }, tokens.signUp);
      const send: Send<Sent> = async (attempt) => {
        const body = await provider.tokenCall(attempt.claims);
        return post({ url, token: tokens.signIn }, ACCOUNT_TOKENS, { attempt, body });
      };
      const ofOwn = attemptsFor(({ subject: sub }) => ({ sub }));
      /** Three at a time, so that the budget is overdrawn by two: it refills by one in nine seconds. */
      const exhaust = async (address: string) => {
        const refused = () => send({ isKnown: false, address, claims: undefined });
        const answers = await Promise.all([refused(), refused(), refused()]);
        return answers.find((answer) => statusOf(answer) === 429) ?? answers[0];
      };
      for (const [attempt, status] of [
        [ofOwn[0], 201],
        [ofOwn.at(-1), 400],
      ] as const) {
        const answer = attempt && (await send(attempt));
        if (!answer || statusOf(answer) !== status) throw new Error(`not ${status}: ${answer?.response}`);
      }
      return async (load) => {
        // Every subject is unknown, and as often one of a known address as of an unknown one.
        const identities = attemptsFor((_, at) => ({ sub: others[at] }));
        await comparisons.compare([load, 'identity'], 400, { attempts: identities, send });
        const replayed = attemptsFor(({ subject: sub }) => ({ sub, nonce: 'of another request' }));
        await comparisons.compare([load, 'ID token'], 400, { attempts: replayed, send });
        await comparisons.compareExhausted([load, '(429)'], { attempts: ofOwn, send }, exhaust);
      };
    },
  };
}
