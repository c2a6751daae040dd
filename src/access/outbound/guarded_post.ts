import { LIMITS } from '../../model/limits.ts';
import type { OutboundRequest } from './exchange.ts';
import { type FetchOptions, type GuardedFetchOptions, jsonIn, openGuardedExchange } from './guarded_fetch.ts';

export type GuardedPost = ReturnType<typeof openGuardedPost>;

/**
 * Posts bytes to an untrusted URL, with the same guard as every outbound request: no redirect is followed, and the
 * response is read up to a bound. Returns its status, or undefined without a response. Ends within
 * `webhookMsMax` or at `signal`, and never rejects.
 */
export function openGuardedPost(options: GuardedFetchOptions = {}) {
  const exchange = openGuardedExchange(options);
  return async (
    url: string,
    { headers, body }: Pick<OutboundRequest, 'headers' | 'body'>,
    signal?: AbortSignal,
  ): Promise<number | undefined> => {
    const exchanged = await exchange(url, {
      msMax: LIMITS.webhookMsMax,
      signal,
      request: {
        method: 'POST',
        headers,
        body,
        answerBytesMax: LIMITS.webhookAnswerBytesMax,
        isStatusEnough: true,
      },
    });
    return exchanged.kind === 'answered' ? exchanged.status : undefined;
  };
}

export type GuardedForm = ReturnType<typeof openGuardedForm>;

/** Posts a form. Returns the status of the response and the JSON object in it, if any; undefined without a response. Ends within `msMax`, and never rejects. */
export function openGuardedForm(options: GuardedFetchOptions = {}) {
  const exchange = openGuardedExchange(options);
  return async (
    url: string,
    form: Readonly<Record<string, string>>,
    { headers, namedBy, msMax = LIMITS.outboundMsMax }: Pick<FetchOptions, 'headers' | 'namedBy' | 'msMax'>,
  ) => {
    const exchanged = await exchange(url, {
      msMax,
      namedBy,
      request: {
        method: 'POST',
        headers: {
          ...headers,
          Accept: 'application/json',
          'Content-Type': 'application/x-www-form-urlencoded',
        },
        body: new TextEncoder().encode(new URLSearchParams(form).toString()),
        answerBytesMax: LIMITS.outboundBytesMax,
        isStatusEnough: false,
      },
    });
    if (exchanged.kind !== 'answered') return undefined;
    return { status: exchanged.status, document: jsonIn(exchanged) };
  };
}
