import { hostname } from 'node:os';
import type { CheckpointSink } from '../audit/checkpoint_sink.ts';
import { type Checkpoints, startCheckpoints } from '../audit/checkpoints.ts';
import type { LogKeys } from '../audit/log_keys.ts';
import { checkpointFileOf, type Settings } from '../config/parse.ts';
import type { Clock } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { openLeases } from '../jobs/leases.ts';
import { type GuardedPost, openGuardedPost } from '../outbound/guarded_post.ts';
import { appendLines } from '../platform/fsync.ts';
import type { Log } from '../platform/log.ts';
import { type Engine, isInMemory } from '../store/open.ts';

/**
 * The outputs for checkpoints and erasures: a file, a URL, or where neither is set the service's own log. A database in memory
 * has none.
 */
export function checkpointSinksOf(
  settings: Settings,
  keys: LogKeys,
  clock: Clock,
  log?: Log,
): readonly CheckpointSink[] {
  if (isInMemory(settings.database)) return [];
  const file = checkpointFileOf(settings);
  const { checkpointUrl: url, allowLoopbackWebhooks: allowLoopback } = settings;
  const sinks: readonly CheckpointSink[] = [
    ...(file === undefined ? [] : [async (lines: readonly string[]) => appendLines(file, lines)]),
    ...(url === undefined
      ? []
      : [openUrlSink({ url, keys, clock, post: openGuardedPost({ allowLoopback }) })]),
  ];
  if (sinks.length > 0 || !log) return sinks;
  return [
    async (lines) => {
      for (const line of lines) log.write({ event: 'checkpoint', line });
      // Until then they are in the memory of this process alone.
      await log.written(LIMITS.checkpointPostMsMax);
    },
  ];
}

interface UrlSinkDeps {
  readonly url: string;
  readonly keys: Pick<LogKeys, 'sign'>;
  readonly post: GuardedPost;
  readonly clock: Pick<Clock, 'mintId' | 'now'>;
}

/**
 * Sends lines to a receiver, which appends them: one JSON object a line. The message is signed by the key of the lines, in
 * the Ed25519 scheme of Standard Webhooks (`v1a`). Rejects unless the response is 2xx and in time.
 */
function openUrlSink({ url, keys, post, clock }: UrlSinkDeps): CheckpointSink {
  return async (lines) => {
    const text = lines.map((line) => `${line}\n`).join('');
    const id = `msg_${clock.mintId()}`;
    const timestamp = String(Math.floor(clock.now() / 1_000));
    const signature = Buffer.from(keys.sign(`${id}.${timestamp}.${text}`), 'base64url').toString('base64');
    const headers = {
      'content-type': 'application/x-ndjson',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1a,${signature}`,
    };
    const late = AbortSignal.timeout(LIMITS.checkpointPostMsMax);
    const posted = await post(url, { headers, body: Buffer.from(text) }, late);
    if (posted.kind === 'answered' && posted.isSuccess) return;
    const code = posted.kind === 'answered' ? `HTTP_${posted.status}` : 'RECEIVER_UNREACHABLE';
    throw Object.assign(new Error('the receiver of checkpoints did not accept them'), { code });
  };
}

/** The lease holder renews every minute; after two minutes another process takes over. */
const TERM_MS = 1.5 * LIMITS.checkpointMs;

/** Writes checkpoints and erasures to the sinks of these settings every minute. */
export function startCheckpointSinks(
  settings: Settings,
  { engine, logKeys }: { readonly engine: Engine; readonly logKeys: LogKeys },
  log: Log,
  clock: Clock,
): Checkpoints {
  return startCheckpoints({
    store: engine.log,
    leases: openLeases(engine.leases, TERM_MS, clock),
    keys: logKeys,
    sinks: checkpointSinksOf(settings, logKeys, clock, log),
    retentionDays: settings.retentionDays,
    clock,
    name: sinkNames(settings),
    onError: ({ code = 'unknown' }, since) =>
      log.write({ event: 'checkpoint_failed', cause: code, since: new Date(since).toISOString() }),
  });
}

/** The same for processes that share their sinks. It is stored in the database, and the URL may contain a secret. */
function sinkNames(settings: Settings): string {
  const { checkpointUrl: url } = settings;
  const receiver = url === undefined ? [] : [new Bun.CryptoHasher('sha256').update(url).digest('hex')];
  return [hostname(), checkpointFileOf(settings) ?? '', ...receiver].join(' ');
}
