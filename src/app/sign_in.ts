import { openSignerKeys } from '../access/keys/signer_keys.ts';
import type { AuthCache } from '../access/tokens/auth_cache.ts';
import type { OwnJwts } from '../access/tokens/own_jwts.ts';
import { openAccountTokens } from '../compat/account_token.ts';
import { Fault } from '../model/fault.ts';
import { openPasswordCheckCounts, openSignInCounts } from '../ops/metrics/outcome_counts.ts';
import { openChecker } from '../ops/workers/checker.ts';
import { openHasher } from '../ops/workers/hasher.ts';
import { openSignInBudgets } from '../sign_in/budgets.ts';
import { type CheckedPassword, openRehash } from '../sign_in/credentials.ts';
import { openDecoys } from '../sign_in/decoys.ts';
import { openDeviceTokens } from '../sign_in/device_token.ts';
import { openPasswordCheck } from '../sign_in/password_check.ts';
import { openSignInQueue } from '../sign_in/queue.ts';
import { openSignUp } from '../sign_in/sign_up.ts';
import { backgroundFault } from './background_fault.ts';
import { startExpiry } from './expiry.ts';
import type { ServiceContext } from './service_context.ts';
import type { UsageTracking } from './usage.ts';

/** Interval at which budgets that are full again are deleted. */
const SWEEP_EVERY_MS = 60_000;

/** Hashes and checks passwords, and makes account tokens. */
export function openSignIn(
  { settings, engine, keyring, logKeys, loopBudget, log, clock }: ServiceContext,
  { throttled, signedIn }: Pick<UsageTracking, 'throttled' | 'signedIn'>,
) {
  const { credentials } = engine;
  const cost = settings.passwordCost;
  const hasher = openHasher(cost);
  const checker = openChecker();
  const budgets = openSignInBudgets(engine.budgets, logKeys, clock);
  const counts = openPasswordCheckCounts();
  const signInCounts = openSignInCounts();
  const rehash = openRehash({ credentials, hashPassword: hasher.hash, cost, clock });
  const rehashing = new Set<Promise<unknown>>();

  function rehashLater(checked: CheckedPassword): void {
    const done = rehash(checked).catch((error: unknown) => {
      // A later sign-in tries again.
      if (error instanceof Fault && error.code !== 'internal') return;
      log.write(backgroundFault('rehash', error));
    });
    rehashing.add(done);
    done.finally(() => rehashing.delete(done));
  }

  const queue = openSignInQueue(clock.monotonic);
  const devices = openDeviceTokens(logKeys, clock);
  const signerKeys = openSignerKeys(engine.access, keyring, clock);
  const check = openPasswordCheck({
    ...{ credentials, budgets, rehash: rehashLater },
    ...{ findSignerKey: signerKeys.find, compare: checker.check },
    ...{ devices, queue },
    decoys: openDecoys({ credentials, keys: logKeys, cost, clock }),
  });
  const signUp = openSignUp(budgets, queue);
  const sweep = async (now: number) => {
    await loopBudget.turn();
    return engine.budgets.deleteFull(now);
  };
  const sweeping = startExpiry([sweep], clock, SWEEP_EVERY_MS);
  return {
    hashPassword: hasher.hash,
    budgets,
    figures: { hasher: hasher.figures, checks: queue.figures },
    collect: () => [...counts.collect(), ...signInCounts.collect()],
    /** What the operations need, given the base URL. */
    signIn(
      { access: cache, jwts }: { readonly access: AuthCache; readonly jwts: OwnJwts },
      names: { readonly issuer: string; readonly installation: string },
    ) {
      const accountTokens = openAccountTokens(
        { cache, jwts, credentials, store: engine.records, clock },
        names,
      );
      const { append, newestActsOf } = engine.log;
      const { hasPassword } = credentials;
      const logSuccess = settings.logSignIns ? signedIn : undefined;
      return {
        ...{ check, accountTokens, budgets, count: counts.record, throttled, logSuccess, log: append },
        ...{ newestActsOf, hasPassword },
        ...{ signUp, countSignIn: signInCounts.record, makeDevice: devices.make },
      };
    },
    async stop() {
      await Promise.all(rehashing);
      await Promise.all([hasher.close(), checker.close(), sweeping.stop()]);
    },
  };
}
