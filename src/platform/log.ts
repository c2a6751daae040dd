import pino from 'pino';

/** Which requests are logged: only failed ones, one in a hundred, or all. */
export type RequestLogging = 'off' | 'sampled' | 'full';

/**
 * Everything that can be logged. The type is closed on purpose: it has no member for an error, an address, headers or an
 * object of a driver, so that no token, subject, username or secret can be logged.
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
  | { readonly event: 'process_started' | 'process_exited'; readonly pid: number; readonly code?: number }
  | {
      readonly event: 'request';
      readonly request_id: string;
      readonly method: string;
      /** The pattern of the route, never the path. */
      readonly route: string;
      readonly status: number;
      readonly duration_ms: number;
      readonly client_id?: string;
      /** Of the caller's `traceparent` header. */
      readonly trace_id?: string;
    }
  /** The outcome of fetching the keys of an external issuer, if it differs from that of the previous fetch. */
  | { readonly event: 'issuer_keys'; readonly issuer: string; readonly outcome: string }
  /** The outcome of a sign-in to the console by an OpenID provider, if it differs from that of the previous one. */
  | { readonly event: 'console_provider'; readonly provider: string; readonly outcome: string }
  /** A signed checkpoint of an audit log, or an erasure, as a line that `audit verify` and `restore` read. */
  | { readonly event: 'checkpoint'; readonly line: string }
  /** Checkpoints could not be written to a destination; `since`: when all of them were written last. */
  | { readonly event: 'checkpoint_failed'; readonly cause: string; readonly since: string }
  /** A receiver answered 410; a message could not be delivered for a day. */
  | { readonly event: 'webhook_disabled' | 'webhook_dead_letter'; readonly webhook_id: string }
  /** The audit log of a realm, or of the installation, was modified: its old entries are not removed. */
  | { readonly event: 'retention_failed'; readonly log: string; readonly cause: string }
  /** The number of requests that were rejected within a second for one cause, such as `QUEUE_FULL`. */
  | { readonly event: 'overloaded'; readonly cause: string; readonly count: number }
  /** Entries of the installation's audit log that wait because the database takes no writes, and those that are lost. */
  | { readonly event: 'audit_entries_pending'; readonly pending: number; readonly dropped: number }
  | {
      readonly event: 'fault';
      readonly request_id: string;
      readonly route: string;
      readonly code: string;
      /** The error code of the database or the runtime, such as `SQLITE_FULL`. */
      readonly cause: string;
      /** The stack trace: function names and lines, no messages. */
      readonly frames?: readonly string[];
      readonly trace_id?: string;
    };

export interface Log {
  write(record: LogRecord): void;
  /**
   * Resolves once the operating system has accepted everything that was written so far. Rejects with the code `LOG_BLOCKED`
   * after `msMax` milliseconds, when the reader of standard error does not keep up.
   */
  written(msMax: number): Promise<void>;
}

const LEVELS: Partial<Record<LogRecord['event'], 'error' | 'warn'>> = {
  fault: 'error',
  process_exited: 'warn',
  webhook_disabled: 'warn',
  webhook_dead_letter: 'warn',
  overloaded: 'warn',
  audit_entries_pending: 'warn',
  checkpoint_failed: 'error',
  retention_failed: 'error',
};

/** Writes one JSON line for each event to standard error, asynchronously. */
export function openLog(): Log {
  const out = pino.destination({ dest: 2, sync: false });
  const listeners = new Set<() => void>();
  let [bytesLogged, bytesWritten] = [0, 0];
  const counted = {
    write(line: string) {
      bytesLogged += Buffer.byteLength(line);
      out.write(line);
    },
  };
  out.on('write', (bytes) => {
    bytesWritten += bytes;
    for (const listener of listeners) listener();
  });
  const lines = pino(
    { base: null, timestamp: pino.stdTimeFunctions.isoTime, messageKey: 'message' },
    counted,
  );
  return {
    write: (record) => lines[LEVELS[record.event] ?? 'info'](record),
    written(msMax) {
      const target = bytesLogged;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const check = () => bytesWritten >= target && resolve();
      const timer = setTimeout(() => reject(blocked()), msMax);
      listeners.add(check);
      check();
      return promise.finally(() => {
        clearTimeout(timer);
        listeners.delete(check);
      });
    },
  };
}

function blocked(): Error {
  return Object.assign(new Error('the reader of standard error does not keep up'), { code: 'LOG_BLOCKED' });
}
