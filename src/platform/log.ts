import pino from 'pino';

/** How many requests are written: none but failed ones, one in a hundred, or all. */
export type RequestLogging = 'off' | 'sampled' | 'full';

/**
 * Everything that can be logged. The type is closed on purpose: there is no member for an error, an address, a header
 * map or a driver's object, so no token, subject, username or secret finds a way in.
 */
export type LogRecord =
  | {
      readonly event: 'started';
      readonly url: string;
      readonly version: string;
      readonly engine: string;
      readonly pid: number;
    }
  | { readonly event: 'stopping'; readonly signal: string }
  | { readonly event: 'stopped' }
  | { readonly event: 'process_started' | 'process_ended'; readonly pid: number; readonly code?: number }
  | {
      readonly event: 'request';
      readonly request_id: string;
      readonly method: string;
      /** The pattern of the route, never the path. */
      readonly route: string;
      readonly status: number;
      readonly ms: number;
      readonly client_id?: string;
      /** Of the trace that the caller said it is part of. */
      readonly trace_id?: string;
    }
  /** How reading the keys of an external issuer went, where that differs from the time before. */
  | { readonly event: 'issuer_keys'; readonly issuer: string; readonly outcome: string }
  /** How a provider answered by which people sign in to the console, where that differs from the time before. */
  | { readonly event: 'console_provider'; readonly provider: string; readonly outcome: string }
  /** How far a log is, or who was erased, as a signed line that `audit verify` and `restore` read. */
  | { readonly event: 'checkpoint'; readonly line: string }
  /** A place outside of the database could not be told how far the logs are; `since`: when all of it was told last. */
  | { readonly event: 'checkpoint_failed'; readonly cause: string; readonly since: string }
  /** A receiver said that it is gone; something could not be told to one for a day. */
  | { readonly event: 'webhook_disabled' | 'webhook_given_up'; readonly webhook_id: string }
  /** The log of a realm, or of the installation, is not as this service wrote it: what is too old is not removed from it. */
  | { readonly event: 'retention_failed'; readonly log: string; readonly cause: string }
  /** So many requests were refused within a second, for one cause: `QUEUE_FULL`, for example. */
  | { readonly event: 'overloaded'; readonly cause: string; readonly count: number }
  /** Entries of the log of the installation that wait because nothing can be written, and those that are lost. */
  | { readonly event: 'entries_waiting'; readonly count: number; readonly lost: number }
  | {
      readonly event: 'fault';
      readonly request_id: string;
      readonly route: string;
      readonly code: string;
      /** The engine's or the runtime's own code, for example `SQLITE_FULL`. */
      readonly cause: string;
      /** Where in the code: function names and lines, no messages. */
      readonly frames?: readonly string[];
      readonly trace_id?: string;
    };

export interface Log {
  write(record: LogRecord): void;
  /**
   * Resolves once the system has all that was written so far. Rejects with the code `LOG_HELD_UP` where whoever reads the
   * log did not take it within so many milliseconds.
   */
  written(msMax: number): Promise<void>;
}

const LEVELS: Partial<Record<LogRecord['event'], 'error' | 'warn'>> = {
  fault: 'error',
  process_ended: 'warn',
  webhook_disabled: 'warn',
  webhook_given_up: 'warn',
  overloaded: 'warn',
  entries_waiting: 'warn',
  checkpoint_failed: 'error',
  retention_failed: 'error',
};

/** One JSON line per event on standard error, written off the request's path. */
export function openLog(): Log {
  const out = pino.destination({ dest: 2, sync: false });
  const watched = new Set<() => void>();
  let [given, gone] = [0, 0];
  const counting = {
    write(line: string) {
      given += Buffer.byteLength(line);
      out.write(line);
    },
  };
  out.on('write', (bytes) => {
    gone += bytes;
    for (const look of watched) look();
  });
  const lines = pino(
    { base: null, timestamp: pino.stdTimeFunctions.isoTime, messageKey: 'message' },
    counting,
  );
  return {
    write: (record) => lines[LEVELS[record.event] ?? 'info'](record),
    written(msMax) {
      const upTo = given;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const look = () => gone >= upTo && resolve();
      const late = setTimeout(() => reject(heldUp()), msMax);
      watched.add(look);
      look();
      return promise.finally(() => {
        clearTimeout(late);
        watched.delete(look);
      });
    },
  };
}

function heldUp(): Error {
  return Object.assign(new Error('nobody takes what is logged'), { code: 'LOG_HELD_UP' });
}
