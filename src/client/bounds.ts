/** The limits of this library, named like those of the service; see docs/client.md. */
export const BOUNDS = Object.freeze({
  /** Default number of retries of a request. */
  retries: 4,
  /** Default timeout of one attempt, from the first byte sent to the last byte read. */
  timeoutMs: 10_000,
  /** Default timeout of all attempts of a request and the delays between them. */
  totalTimeoutMs: 60_000,
  /** Limit for a Retry-After header. */
  retryAfterMsMax: 30_000,
  /** First delay of the exponential backoff, used without a Retry-After header. */
  pauseMsMin: 100,
  pauseMsMax: 5_000,
  /** How often `modify` repeats while other clients write the same record. */
  modifyAttemptsMax: 20,
  /** A token is renewed this long before it expires, or after 90 % of its lifetime if that is later. */
  tokenLeewayMs: 60_000,
});
