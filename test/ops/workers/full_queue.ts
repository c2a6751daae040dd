import { Fault } from '../../../src/model/fault.ts';

/** More than one worker and a queue of 64. */
const REQUESTS = 70;

/** What becomes of concurrent requests to a worker that is free, in the order of their ends: `done`, or the code of the Fault. */
export async function outcomesOfFullQueue(send: () => Promise<unknown>): Promise<readonly string[]> {
  for (;;) {
    const outcomes: string[] = [];
    const all = Array.from({ length: REQUESTS }, () =>
      send().then(
        () => outcomes.push('done'),
        (error: unknown) => outcomes.push(error instanceof Fault ? error.code : String(error)),
      ),
    );
    await Promise.all(all);
    // On a busy machine some wait too long.
    if (outcomes.filter((outcome) => outcome === 'overloaded').length <= 5) return outcomes;
  }
}
