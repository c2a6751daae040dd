import { FAULTS } from '../src/domain/fault.ts';

const TRIES_MAX = 10;

type Answer = Pick<Response, 'status' | 'headers'>;

/** The answer to a request that is sent again, as it is told to, while there is too much to do. */
export async function settled<A extends Answer>(
  send: () => Promise<A>,
  isToBeAskedAgain: (answer: A) => boolean | Promise<boolean> = () => true,
): Promise<A> {
  for (let tries = 1; ; tries += 1) {
    const answer = await send();
    if (answer.status !== 503 || tries === TRIES_MAX || !(await isToBeAskedAgain(answer))) return answer;
    const seconds = Number(answer.headers.get('retry-after'));
    if (!(seconds > 0)) throw new Error('503 does not say when to come again');
    await Bun.sleep(seconds * 1_000);
  }
}

/**
 * Whether what was asked has no place or was late, as what is done at the lowest priority is where something else takes the
 * machine; and not that the engine does not answer.
 */
export async function isOverloaded(answer: Response): Promise<boolean> {
  return (await answer.clone().text()).includes(FAULTS.overloaded.detail);
}
