import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { attempt } from '../../model/attempt.ts';
import { systemClock } from './clock.ts';
import { escapeUnprintable, STANDARD_ERROR, writeAll } from './standard_streams.ts';

/** One JSON object per line, or a line of words for people. */
export type LogFormat = 'json' | 'text';

/** Which requests are logged: only failed ones, one in a hundred, or all. */
export type RequestLogging = 'off' | 'sampled' | 'full';

/**
 * Everything that can be logged. The type is closed on purpose: it has no member for an error, the address of a caller,
 * headers or an object of a driver, so that no token, subject, username or secret can be logged. The comment of an event
 * is its description in docs/reference/log-events.md.
 */
export type LogRecord =
  /** The service accepts requests. */
  | {
      readonly event: 'started';
      readonly url: string;
      readonly version: string;
      readonly engine: string;
      readonly pid: number;
    }
  /** A [signal](../guides/processes.md#signals) that stops the service was received. */
  | { readonly event: 'stopping'; readonly signal: string }
  /** The service has stopped. */
  | { readonly event: 'stopped' }
  /** With `--processes 2` or more. */
  | { readonly event: 'process_started'; readonly pid: number }
  /** A serving process exited unexpectedly. */
  | { readonly event: 'process_exited'; readonly pid: number; readonly code?: number }
  /** With `--log-requests`. `route` is the pattern, and `*` for an unknown path; `trace_id` is that of the `traceparent` header. */
  | {
      readonly event: 'request';
      readonly request_id: string;
      readonly method: string;
      readonly route: string;
      readonly status: number;
      readonly duration_ms: number;
      readonly client_id?: string;
      readonly trace_id?: string;
    }
  /**
   * The outcome of fetching the keys of an external issuer changed: `read`, `unreachable`, `redirect`, `not_json`, `issuer_differs`,
   * `no_key_set`, or `forbidden` for a URL that needs `--allow-private`. `issuer` is its name in the `--issuers-file`.
   */
  | { readonly event: 'issuer_keys'; readonly issuer: string; readonly outcome: string }
  /**
   * The outcome of a console sign-in by an OpenID provider changed: `answered`, `metadata_unusable`, one of `issuer_keys`,
   * `token_endpoint_failed`, `no_id_token`, or `id_token_refused`, because of `algorithms` or a wrong clock, for example.
   */
  | { readonly event: 'console_provider'; readonly provider: string; readonly outcome: string }
  /**
   * A sign-in through this provider failed. Of the sign-in: `code_refused`, `id_token_refused`, `userinfo_refused`; of an identity
   * without a link: `no_email`, `email_not_verified`, `email_ambiguous`, `may_not_create`; `taken` by another user;
   * [`disabled`](../wire.md#disabled-users); of the provider: as `console_provider`, `keys_unreadable`, `userinfo_failed`; or
   * `client_secret_unusable`, if the profile has none that the master key opens.
   */
  | {
      readonly event: 'oidc_sign_in_failed';
      readonly realm: string;
      readonly profile: string;
      readonly cause: string;
      readonly count: number;
    }
  /**
   * Checkpoints and erasures could not be written to the file. `cause` is an error code of the operating system, `since` the last success.
   * Logged every minute.
   */
  | { readonly event: 'checkpoint_failed'; readonly cause: string; readonly since: string }
  /** A request was not sent: `host` resolves to `address`, which is not public and which `--allow-private` does not allow. */
  | {
      readonly event: 'private_address_refused';
      readonly host: string;
      readonly address: string;
      readonly count: number;
    }
  /** The target answered 410. */
  | { readonly event: 'webhook_disabled'; readonly webhook_id: string }
  /** A message was given up after a day or more. */
  | { readonly event: 'webhook_dead_letter'; readonly webhook_id: string }
  /** The audit log of this realm, or of the installation if `log` is the nil UUID, was modified: its old entries are not removed. */
  | { readonly event: 'retention_failed'; readonly log: string; readonly cause: string }
  /**
   * A row was changed in the database without the service, and is not honoured. `id` is that of the client, signing key, webhook target or
   * console session, or the digest of the code of a console link.
   */
  | { readonly event: 'forged_row'; readonly table: string; readonly id: string }
  /** The schema of the database. On SQLite, `copy` names the copy made before. */
  | { readonly event: 'migrated'; readonly from: number; readonly to: number; readonly copy?: string }
  /** Other users may read or write a database, a key, or another file with secrets: run `chmod 600`. */
  | { readonly event: 'file_mode'; readonly path: string; readonly mode: string }
  /**
   * The process (`EMFILE`) or the machine (`ENFILE`) has no file descriptor left: new connections wait, and a core is busy. Raise
   * `LimitNOFILE` of the unit or `ulimit -n`, or let the proxy keep fewer connections. Logged once a minute.
   */
  | { readonly event: 'out_of_descriptors'; readonly cause: string }
  /**
   * A request from a `--trusted-proxy` had no readable client address in `X-Forwarded-For`: all clients of that proxy share the limits of
   * its address. Logged once a minute; `doctor` names the proxy.
   */
  | { readonly event: 'client_address_unknown' }
  /**
   * Requests rejected because of overload. `cause` is `QUEUE_FULL`, `CONCURRENCY_LIMIT`, `DEADLINE_EXCEEDED`, `WORKER_TIMEOUT`,
   * `WORKER_START_TIMEOUT` or `REVOCATION_LIMIT`.
   */
  | { readonly event: 'overloaded'; readonly cause: string; readonly count: number }
  /**
   * The database accepts no writes, and audit entries wait in memory: `pending` at the beginning, 0 when all are written. `dropped` ones
   * are lost, because the process stops.
   */
  | { readonly event: 'audit_entries_pending'; readonly pending: number; readonly dropped: number }
  /**
   * Answers of status 500 or above without an event of their own, exports that the database ended, and unexpected errors of background work, which `route` names.
   * `code` is the [fault](faults.md); `cause` is the error code of the database or runtime, such as `SQLITE_FULL`, or the type of the error;
   * `frames` are functions and lines of the program.
   */
  | {
      readonly event: 'fault';
      readonly request_id: string;
      readonly route: string;
      readonly code: string;
      readonly cause: string;
      readonly frames?: readonly string[];
      readonly count: number;
      readonly trace_id?: string;
    };

export interface Log {
  write(record: LogRecord): void;
}

const [INFO, WARN, ERROR] = [30, 40, 50];
const LEVEL_NAMES: Readonly<Record<number, string>> = { [INFO]: 'INFO', [WARN]: 'WARN', [ERROR]: 'ERROR' };

export const LOG_LEVELS: Readonly<Record<LogRecord['event'], number>> = {
  started: INFO,
  stopping: INFO,
  stopped: INFO,
  process_started: INFO,
  process_exited: WARN,
  request: INFO,
  issuer_keys: INFO,
  console_provider: INFO,
  oidc_sign_in_failed: INFO,
  checkpoint_failed: ERROR,
  private_address_refused: WARN,
  webhook_disabled: WARN,
  webhook_dead_letter: WARN,
  retention_failed: ERROR,
  forged_row: ERROR,
  migrated: INFO,
  file_mode: WARN,
  out_of_descriptors: ERROR,
  client_address_unknown: WARN,
  overloaded: WARN,
  audit_entries_pending: WARN,
  fault: ERROR,
};

/** `2026-01-31T12:00:00.000Z INFO started url=http://127.0.0.1:8080 version=0.9.0`; a value with a space is quoted as in JSON. */
function textLine(level: number, time: string, { event, ...members }: LogRecord): string {
  const words = Object.entries(members).map(([name, value]) => {
    const isWord = typeof value === 'string' && /^[!#-~]+$/.test(value);
    return `${name}=${isWord ? value : escapeUnprintable(JSON.stringify(value))}`;
  });
  return [time, LEVEL_NAMES[level], event, ...words].join(' ');
}

/** Writes a line for each event to standard error, asynchronously, by default as text on a terminal. Lines not accepted are lost. */
export function openLog(format: LogFormat = isatty(STANDARD_ERROR) ? 'text' : 'json'): Log {
  const repetitions = openRepetitions(writeLine);
  let waiting = '';
  let written: Promise<void> = Promise.resolve();

  async function writeWaiting(): Promise<void> {
    const lines = Buffer.from(waiting);
    waiting = '';
    await writeAll(STANDARD_ERROR, lines);
  }

  function writeLine(record: LogRecord): void {
    const isScheduled = waiting !== '';
    const time = new Date(systemClock.now()).toISOString();
    const level = LOG_LEVELS[record.event];
    const line =
      format === 'text' ? textLine(level, time, record) : JSON.stringify({ level, time, ...record });
    waiting += `${line}\n`;
    if (isScheduled) return;
    written = written.then(writeWaiting).catch(() => undefined);
  }

  // The last lines of a process that ends by an error.
  process.once('exit', () => {
    repetitions.flush();
    attempt(() => writeSync(STANDARD_ERROR, waiting));
  });
  return {
    write(record) {
      if ('count' in record) repetitions.write(record);
      else writeLine(record);
    },
  };
}

/** A record whose repetitions are counted. */
type CountedRecord = Extract<LogRecord, { readonly count: number }>;

const REPETITION_INTERVAL_MS = 1_000;

/**
 * Writes the first record of a kind at once, and repetitions once a second, as the last one with their number. A line for each would cost
 * more than the reply, and fill a disk while the database is away.
 */
function openRepetitions(writeLine: (record: CountedRecord) => void) {
  const counted = new Map<string, { record: CountedRecord; count: number }>();
  const flush = () => {
    for (const [kind, last] of counted) {
      if (last.count === 0) counted.delete(kind);
      else writeLine({ ...last.record, count: last.count });
      last.count = 0;
    }
    if (counted.size > 0) setTimeout(flush, REPETITION_INTERVAL_MS).unref();
  };
  return {
    write(record: CountedRecord): void {
      const kind = kindOf(record);
      const last = counted.get(kind);
      if (last === undefined) writeLine(record);
      if (counted.size === 0) setTimeout(flush, REPETITION_INTERVAL_MS).unref();
      counted.set(kind, { record, count: last === undefined ? 0 : last.count + 1 });
    },
    flush,
  };
}

function kindOf(record: CountedRecord): string {
  switch (record.event) {
    case 'fault':
      return `${record.code} ${record.cause} ${record.route}`;
    case 'private_address_refused':
      return record.host;
    case 'overloaded':
      return record.cause;
    case 'oidc_sign_in_failed':
      return `${record.profile} ${record.cause}`;
  }
}
