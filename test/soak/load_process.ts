import type { Socket } from 'bun';

/**
 * Load on a service from a separate process: `bun test/soak/load_process.ts PLAN`, the plan as JSON. With `callers` (closed
 * loop) each caller sends its next request after a response; with `perSecond` (open loop) requests are sent on schedule, and
 * latency counts from the scheduled time. The last line of standard output is the result as JSON.
 */
export interface LoadPlan {
  readonly url: string;
  readonly token: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** `{n}` is replaced by a unique text in each request. */
  readonly body?: string;
  readonly callers?: number;
  readonly perSecond?: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface LoadResult {
  /** Successful responses per second. */
  readonly donePerSecond: number;
  /** Requests sent per second. */
  readonly sentPerSecond: number;
  /** 503 and 429. */
  readonly refused: number;
  /** Latency of 503 and 429, and of successes, in milliseconds. */
  readonly refusedMs: Quantiles;
  readonly doneMs: Quantiles;
  /** Other responses and lost connections. */
  readonly failed: number;
}

interface Quantiles {
  readonly p50: number;
  readonly p99: number;
}

interface Connection {
  readonly socket: Socket<Connection>;
  dueAt: number;
  text: string;
}

/** The system has no ports for more. */
const CONNECTIONS_MAX = 8_000;

if (import.meta.main) {
  const plan = JSON.parse(process.argv[2] ?? '{}') as LoadPlan;
  console.log(JSON.stringify(await perform(plan)));
  process.exit(0);
}

async function perform(plan: LoadPlan): Promise<LoadResult> {
  const start = performance.now();
  const from = start + plan.warmUpSeconds * 1_000;
  const until = from + plan.seconds * 1_000;
  const measurement = openMeasurement(from, until);
  const idle: Connection[] = [];
  const connections = openConnections(plan, measurement, (connection) => {
    if (plan.callers === undefined) idle.push(connection);
    else if (performance.now() < until) connections.send(connection, performance.now());
  });
  if (plan.callers === undefined) await sendAtRate(plan.perSecond ?? 1, { start, until, idle, connections });
  else {
    for (let caller = 0; caller < plan.callers; caller += 1) connections.open(start);
    await Bun.sleep(until - performance.now());
  }
  // Waits for the last responses.
  await Bun.sleep(2_000);
  return measurement.result(plan.seconds);
}

interface Timing {
  readonly start: number;
  readonly until: number;
  readonly idle: Connection[];
  readonly connections: ConnectionPool;
}

async function sendAtRate(perSecond: number, { start, until, idle, connections }: Timing): Promise<void> {
  const everyMs = 1_000 / perSecond;
  for (let due = 0; performance.now() < until; await Bun.sleep(1)) {
    for (; start + due * everyMs <= performance.now(); due += 1) {
      const connection = idle.pop();
      if (connection) connections.send(connection, start + due * everyMs);
      else connections.open(start + due * everyMs);
    }
  }
}

interface Measurement {
  sent(dueAt: number): void;
  answered(dueAt: number, status: number): void;
  lost(): void;
  result(seconds: number): LoadResult;
}

/** Measures requests scheduled in an interval; throughput counts the successes in it, whenever they were scheduled. */
function openMeasurement(from: number, until: number): Measurement {
  const isMeasured = (at: number) => at >= from && at < until;
  const refused: number[] = [];
  const done: number[] = [];
  let sent = 0;
  let failed = 0;
  let finished = 0;
  return {
    sent(dueAt) {
      if (isMeasured(dueAt)) sent += 1;
    },
    answered(dueAt, status) {
      const now = performance.now();
      const isDone = status >= 200 && status < 300;
      if (isDone && isMeasured(now)) finished += 1;
      if (!isMeasured(dueAt)) return;
      if (isDone) done.push(now - dueAt);
      else if (status === 503 || status === 429) refused.push(now - dueAt);
      else failed += 1;
    },
    lost() {
      failed += 1;
    },
    result: (seconds) => ({
      donePerSecond: finished / seconds,
      sentPerSecond: sent / seconds,
      refused: refused.length,
      refusedMs: quantiles(refused),
      doneMs: quantiles(done),
      failed,
    }),
  };
}

interface ConnectionPool {
  /** Sends one request; `dueAt` is its scheduled time. */
  send(connection: Connection, dueAt: number): void;
  /** Sends it over a new connection. */
  open(dueAt: number): void;
}

/** Keep-alive connections; `onIdle` is called for each that has received its response. */
function openConnections(
  plan: LoadPlan,
  measurement: Measurement,
  onIdle: (connection: Connection) => void,
): ConnectionPool {
  const { hostname, port } = new URL(plan.url);
  const compose = requestComposer(plan);
  let count = 0;
  const connections: ConnectionPool = {
    send(connection, dueAt) {
      connection.dueAt = dueAt;
      measurement.sent(dueAt);
      connection.socket.write(compose());
    },
    open(dueAt) {
      if (count >= CONNECTIONS_MAX) return measurement.lost();
      count += 1;
      const onClose = () => {
        count -= 1;
        measurement.lost();
      };
      Bun.connect<Connection>({
        hostname,
        port: Number(port),
        socket: {
          open(socket) {
            socket.data = { socket, dueAt, text: '' };
            connections.send(socket.data, dueAt);
          },
          data({ data: connection }, piece) {
            connection.text += piece.toString('latin1');
            const status = takeResponse(connection);
            if (status === undefined) return;
            measurement.answered(connection.dueAt, status);
            onIdle(connection);
          },
          close: onClose,
          error() {},
        },
      }).catch(onClose);
    },
  };
  return connections;
}

/** Removes one complete response from the buffer and returns its status. Every response has a Content-Length. */
function takeResponse(connection: Connection): number | undefined {
  const end = connection.text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const length = /\r\ncontent-length: (\d+)/i.exec(connection.text.slice(0, end))?.[1] ?? '0';
  const whole = end + 4 + Number(length);
  if (connection.text.length < whole) return undefined;
  const status = Number(connection.text.slice(9, 12));
  connection.text = connection.text.slice(whole);
  return status;
}

function requestComposer({ url, token, method, path, body }: LoadPlan): () => string {
  const { host } = new URL(url);
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n`;
  const prefix = crypto.randomUUID();
  let count = 0;
  if (body === undefined) return () => `${head}\r\n`;
  return () => {
    count += 1;
    const text = body.replaceAll('{n}', `${prefix}-${count}`);
    return `${head}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
  };
}

function quantiles(values: number[]): Quantiles {
  values.sort((left, right) => left - right);
  const at = (part: number) => values[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}
