import type { JsonObject } from '../domain/json_object.ts';
import { LIMITS } from '../domain/limits.ts';
import { type FetchOptions, type GuardedFetchOptions, jsonIn, openGuardedExchange } from './guarded_fetch.ts';

/** The result of a message: the status of the response, or none, without a reason. `isSuccess`: the status is 2xx. */
export type PostResult =
  | { readonly kind: 'answered'; readonly status: number; readonly isSuccess: boolean }
  | { readonly kind: 'unreachable' };

export interface PostRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/**
 * Posts bytes to an untrusted URL, with the same guard as every outbound request: no redirect is followed, and the
 * response is read up to a bound. Ends within `webhookMsMax` or at `signal`, and never rejects.
 */
export type GuardedPost = (url: string, message: PostRequest, signal?: AbortSignal) => Promise<PostResult>;

export function openGuardedPost(options: GuardedFetchOptions = {}): GuardedPost {
  const exchange = openGuardedExchange(options);
  return async (url, { headers, body }, signal) => {
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
    if (exchanged.kind !== 'answered') return { kind: 'unreachable' };
    const { status } = exchanged;
    return { kind: 'answered', status, isSuccess: status >= 200 && status < 300 };
  };
}

/** The result of a form: the status of the response and the JSON object in it, if any; or no response. */
export type FormResult =
  | { readonly kind: 'answered'; readonly status: number; readonly document: JsonObject | undefined }
  | { readonly kind: 'unreachable' };

/** Posts a form and reads the response. Ends within `outboundMsMax`, and never rejects. */
export type GuardedForm = (
  url: string,
  form: Readonly<Record<string, string>>,
  options: Pick<FetchOptions, 'headers' | 'namedBy'>,
) => Promise<FormResult>;

export function openGuardedForm(options: GuardedFetchOptions = {}): GuardedForm {
  const exchange = openGuardedExchange(options);
  return async (url, form, { headers, namedBy }) => {
    const exchanged = await exchange(url, {
      msMax: LIMITS.outboundMsMax,
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
    if (exchanged.kind !== 'answered') return { kind: 'unreachable' };
    return { kind: 'answered', status: exchanged.status, document: jsonIn(exchanged) };
  };
}
