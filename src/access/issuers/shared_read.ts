import { LIMITS } from '../../model/limits.ts';
import { withTimeout } from '../../model/timeout.ts';

/** One read of a document of an issuer at a time, which requests share. `read` never rejects. */
export function openSharedRead(read: () => Promise<void>) {
  let reading: Promise<void> | undefined;
  let waiting = 0;
  const start = (): Promise<void> => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };
  return {
    isRunning: () => reading !== undefined,
    /** Starts a read, or joins the one that runs. */
    start,
    /** The same for a request, which waits for a limited time, and not at all if too many wait already. */
    async wait(): Promise<void> {
      const running = start();
      if (waiting >= LIMITS.issuerWaitersMax) return;
      waiting += 1;
      await withTimeout(running, LIMITS.issuerKeysWaitMsMax, () => undefined);
      waiting -= 1;
    },
  };
}
