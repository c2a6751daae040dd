import type { Socket } from 'bun';

/**
 * Callers of a service, in a process of their own: `bun test/soak/load_process.ts PLAN`, the plan as JSON. With `callers` each of
 * so many asks again once it is answered; with `perSecond` requests are sent at their time, whatever became of those
 * before, and an answer is late from then on. The last line of standard output is what came of it, as JSON.
 */
export interface LoadPlan {
  readonly url: string;
  readonly token: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** `{n}` stands for something new each time. */
  readonly body?: string;
  readonly callers?: number;
  readonly perSecond?: number;
  /** What is not measured yet, and what is. */
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface Loaded {
  /** Answers that were a success, by the second. */
  readonly donePerSecond: number;
  /** All that was sent, by the second. */
  readonly sentPerSecond: number;
  /** 503 and 429. */
  readonly refused: number;
  /** Milliseconds within which so many of a hundred were refused, and done. */
  readonly refusedMs: Quantiles;
  readonly doneMs: Quantiles;
  /** Any other answer, and connections that were lost. */
  readonly failed: number;
}

interface Quantiles {
  readonly p50: number;
  readonly p99: number;
}

interface Line {
  readonly socket: Socket<Line>;
  dueAt: number;
  text: string;
}

/** More would be sockets that the system does not have. */
const LINES_MAX = 8_000;

if (import.meta.main) {
  const plan = JSON.parse(process.argv[2] ?? '{}') as LoadPlan;
  console.log(JSON.stringify(await perform(plan)));
  process.exit(0);
}

async function perform(plan: LoadPlan): Promise<Loaded> {
  const begun = performance.now();
  const from = begun + plan.warmUpSeconds * 1_000;
  const until = from + plan.seconds * 1_000;
  const tally = openTally(from, until);
  const idle: Line[] = [];
  const lines = openLines(plan, tally, (line) => {
    if (plan.callers === undefined) idle.push(line);
    else if (performance.now() < until) lines.send(line, performance.now());
  });
  if (plan.callers === undefined) await sendInTime(plan.perSecond ?? 1, { begun, until, idle, lines });
  else {
    for (let caller = 0; caller < plan.callers; caller += 1) lines.open(begun);
    await Bun.sleep(until - performance.now());
  }
  // What was sent last is still to be answered.
  await Bun.sleep(2_000);
  return tally.told(plan.seconds);
}

interface Timing {
  readonly begun: number;
  readonly until: number;
  readonly idle: Line[];
  readonly lines: Lines;
}

async function sendInTime(perSecond: number, { begun, until, idle, lines }: Timing): Promise<void> {
  const everyMs = 1_000 / perSecond;
  for (let due = 0; performance.now() < until; await Bun.sleep(1)) {
    for (; begun + due * everyMs <= performance.now(); due += 1) {
      const line = idle.pop();
      if (line) lines.send(line, begun + due * everyMs);
      else lines.open(begun + due * everyMs);
    }
  }
}

interface Tally {
  sent(dueAt: number): void;
  answered(dueAt: number, status: number): void;
  lost(): void;
  told(seconds: number): Loaded;
}

/** Counts what was due between two moments; what was done between them, whenever it was due. */
function openTally(from: number, until: number): Tally {
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
    told: (seconds) => ({
      donePerSecond: finished / seconds,
      sentPerSecond: sent / seconds,
      refused: refused.length,
      refusedMs: quantiles(refused),
      doneMs: quantiles(done),
      failed,
    }),
  };
}

interface Lines {
  /** Sends one request, which was due at a moment. */
  send(line: Line, dueAt: number): void;
  /** The same over a new connection. */
  open(dueAt: number): void;
}

/** Connections that are kept open; `free` is told of each that was answered. */
function openLines(plan: LoadPlan, tally: Tally, free: (line: Line) => void): Lines {
  const { hostname, port } = new URL(plan.url);
  const compose = composing(plan);
  let count = 0;
  const lines: Lines = {
    send(line, dueAt) {
      line.dueAt = dueAt;
      tally.sent(dueAt);
      line.socket.write(compose());
    },
    open(dueAt) {
      if (count >= LINES_MAX) return tally.lost();
      count += 1;
      const gone = () => {
        count -= 1;
        tally.lost();
      };
      Bun.connect<Line>({
        hostname,
        port: Number(port),
        socket: {
          open(socket) {
            socket.data = { socket, dueAt, text: '' };
            lines.send(socket.data, dueAt);
          },
          data({ data: line }, piece) {
            line.text += piece.toString('latin1');
            const status = take(line);
            if (status === undefined) return;
            tally.answered(line.dueAt, status);
            free(line);
          },
          close: gone,
          error() {},
        },
      }).catch(gone);
    },
  };
  return lines;
}

/** Takes one whole answer off what has come, and says its status. Every answer of the service says how long it is. */
function take(line: Line): number | undefined {
  const end = line.text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const length = /\r\ncontent-length: (\d+)/i.exec(line.text.slice(0, end))?.[1] ?? '0';
  const whole = end + 4 + Number(length);
  if (line.text.length < whole) return undefined;
  const status = Number(line.text.slice(9, 12));
  line.text = line.text.slice(whole);
  return status;
}

function composing({ url, token, method, path, body }: LoadPlan): () => string {
  const { host } = new URL(url);
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n`;
  const salt = crypto.randomUUID();
  let count = 0;
  if (body === undefined) return () => `${head}\r\n`;
  return () => {
    count += 1;
    const text = body.replaceAll('{n}', `${salt}-${count}`);
    return `${head}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
  };
}

function quantiles(values: number[]): Quantiles {
  values.sort((left, right) => left - right);
  const at = (part: number) => values[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}
