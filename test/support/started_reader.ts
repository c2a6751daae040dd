import type { Service } from './service.ts';

/**
 * Waits until a reader process of the service runs: on a busy machine, one of the lowest priority starts late. Returns how many
 * requests were rejected until then.
 */
export async function startReader(
  { withoutRetry }: Pick<Service, 'withoutRetry'>,
  token: string,
): Promise<number> {
  for (let rejected = 0; ; rejected += 1) {
    const body = { filter: 'eq(name,"nobody")' };
    const { status } = await withoutRetry.post('/v2/user-authentication-info/search', token, body);
    if (status !== 503) return rejected;
    await Bun.sleep(100);
  }
}
