import { FAULTS } from '../../src/domain/fault.ts';

const TRIES_MAX = 10;

type Answer = Pick<Response, 'status' | 'headers'>;

/**
 * The answer to a request that is sent again, as it is told to, for as long as it is answered 503 and is of this kind. Each
 * time is told: on a machine that does nothing else there should be none.
 */
export async function sendWithRetry<A extends Answer>(
  send: () => Promise<A>,
  isOfKind: (answer: A) => boolean | Promise<boolean> = () => true,
): Promise<A> {
  for (let tries = 1; ; tries += 1) {
    const answer = await send();
    if (answer.status !== 503 || tries === TRIES_MAX || !(await isOfKind(answer))) return answer;
    const seconds = Number(answer.headers.get('retry-after'));
    if (!(seconds > 0)) throw new Error('503 does not say when to come again');
    console.warn(`503: asked again after ${seconds} s`);
    await Bun.sleep(seconds * 1_000);
  }
}

/**
 * Whether what was asked has no place or was late, as what is done at the lowest priority is where something else takes the
 * machine; and not that the engine does not answer.
 */
export async function isOverloaded(answer: Response | { readonly text: string }): Promise<boolean> {
  const text = answer instanceof Response ? await answer.clone().text() : answer.text;
  return text.includes(FAULTS.overloaded.detail);
}
