const TRIES_MAX = 10;

/** The answer to a request that is sent again, as it is told to, while there is too much to do. */
export async function settled<A extends Pick<Response, 'status' | 'headers'>>(
  send: () => Promise<A>,
): Promise<A> {
  for (let tries = 1; ; tries += 1) {
    const answer = await send();
    if (answer.status !== 503 || tries === TRIES_MAX) return answer;
    const seconds = Number(answer.headers.get('retry-after'));
    if (!(seconds > 0)) throw new Error('503 does not say when to come again');
    await Bun.sleep(seconds * 1_000);
  }
}
