import { expect } from 'bun:test';

/** The status of a refused call of a generated SDK, and the error that the SDK hands on. */
export async function refusalOf(
  answer: Promise<{ readonly error?: unknown; readonly response: Response }>,
): Promise<unknown> {
  const { error, response } = await answer;
  return [response.status, error];
}

export const errorOf = (status: string) => ({ errors: [{ status, title: expect.any(String) }] });
