/** Sends a request. Resolves to false if it was answered 503. */
export type SendRequest = () => Promise<boolean>;

const PAUSE_MS = 1;
/** The Retry-After of a 503. */
const RETRY_AFTER_MS = 1_000;

/** Sends requests at a constant rate, without waiting for earlier responses. Resolves with the last response. */
export async function runAtRate(perSecond: number, send: SendRequest, stop: AbortSignal): Promise<void> {
  const start = performance.now();
  const running = new Set<Promise<boolean>>();
  for (let started = 0; !stop.aborted; ) {
    const due = ((performance.now() - start) / 1_000) * perSecond;
    for (; started < due; started += 1) {
      const promise = send().finally(() => running.delete(promise));
      running.add(promise);
    }
    await Bun.sleep(PAUSE_MS);
  }
  await Promise.all(running);
}

/** Each caller sends its next request after the response to the previous one. Resolves with the last response. */
export async function runConcurrently(callers: number, send: SendRequest, stop: AbortSignal): Promise<void> {
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (!stop.aborted) if (!(await send())) await Bun.sleep(RETRY_AFTER_MS);
    }),
  );
}
