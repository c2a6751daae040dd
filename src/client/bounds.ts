/** Every bound of this library, named as those of the service are. docs/client.md explains each one. */
export const BOUNDS = Object.freeze({
  /** How often a request is sent again, unless told otherwise. */
  retries: 4,
  /** From the first byte sent to the last one read, of one attempt; unless told otherwise. */
  timeoutMs: 10_000,
  /** All attempts of a request and the pauses between them; unless told otherwise. */
  patienceMs: 60_000,
  /** A longer wait that an answer asks for is cut to this. */
  retryAfterMsMax: 30_000,
  /** The first pause where no answer asks for one; each further one is twice as long. */
  pauseMsMin: 100,
  pauseMsMax: 5_000,
  /** How often `modify` reads and tries again while others write the same record. */
  modifyAttemptsMax: 20,
  /** A token is fetched anew this long before it ends, or after nine tenths of its life if that is later. */
  tokenLeewayMs: 60_000,
});
