import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { readableStreamToText, type Subprocess } from 'bun';
import type { TestDatabase } from './database.ts';

/** The path of the command: that of the clone, or the program in AUTHREALM_TEST_PROGRAM, such as the binary of a release. */
export const AUTHREALM =
  process.env.AUTHREALM_TEST_PROGRAM ?? fileURLToPath(new URL('../../bin/authrealm', import.meta.url));

/**
 * The command subject to file modes. Root bypasses them unless it drops these capabilities; it keeps its user ID, to read a
 * clone that is private to root.
 */
export const AUTHREALM_UNPRIVILEGED: readonly string[] =
  process.getuid?.() === 0
    ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search', AUTHREALM]
    : [AUTHREALM];

export type Environment = Readonly<Record<string, string>>;

type Piped = Subprocess<'pipe', 'pipe', 'pipe'>;

/** A running command whose standard output is read line by line. */
export interface RunningCommand {
  readonly process: Piped;
  /** The first matching line of standard output; rejects when the process exits without one. */
  line(pattern: RegExp): Promise<string>;
  /** Everything written so far. */
  output(): string;
  /** Sends SIGTERM and resolves with the exit code. */
  stop(): Promise<number>;
}

export function startCommand(command: readonly string[], environment: Environment = {}): RunningCommand {
  const child: Piped = Bun.spawn([...command], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
    env: { PATH: process.env.PATH ?? '', ...environment },
  });
  started.push(child);
  return listen(child);
}

const started: Piped[] = [];

/** Kills the commands that failed tests left running. */
export function killCommands(): void {
  for (const child of started) child.kill('SIGKILL');
}

function listen(child: Piped): RunningCommand {
  let text = '';
  let errors = '';
  let wake = Promise.withResolvers<void>();
  const pump = async (stream: ReadableStream<Uint8Array>, append: (part: string) => void) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      append(decoder.decode(chunk, { stream: true }));
      wake.resolve();
      wake = Promise.withResolvers();
    }
  };
  const ended = Promise.all([
    pump(child.stdout, (part) => {
      text += part;
    }),
    pump(child.stderr, (part) => {
      errors += part;
    }),
  ]).then(() => true);
  return {
    process: child,
    output: () => text + errors,
    async line(pattern) {
      for (;;) {
        const found = text.split('\n').find((line) => pattern.test(line));
        if (found !== undefined) return found;
        const isOver = await Promise.race([ended, wake.promise.then(() => false)]);
        if (isOver && !text.split('\n').some((line) => pattern.test(line))) {
          throw new Error(`exited without a line ${pattern}: ${text}${errors}`);
        }
      }
    },
    async stop() {
      child.kill('SIGTERM');
      return child.exited;
    },
  };
}

/** Runs a command several times at once: each is told to go when all are ready. Returns the line of each that matches `result`. */
export async function runTogether(count: number, command: readonly string[], result: RegExp) {
  const processes = Array.from({ length: count }, () => startCommand(command));
  await Promise.all(processes.map((running) => running.line(/^ready$/)));
  for (const { process: child } of processes) child.stdin.write('go\n');
  for (const { process: child } of processes) child.stdin.flush();
  const lines = await Promise.all(processes.map((running) => running.line(result)));
  const codes = await Promise.all(processes.map((running) => running.process.exited));
  if (codes.some((code) => code !== 0)) throw new Error(`a process failed: ${codes}`);
  return lines;
}

/** The URL on which a started `serve` listens. */
export async function urlOf(service: RunningCommand): Promise<string> {
  return (await service.line(/^listening on /)).slice('listening on '.length);
}

/** Runs a command to its end. */
export async function runCommand(command: readonly string[], environment: Environment = {}, input = '') {
  const child = Bun.spawn([...command], {
    stdin: new Blob([input]),
    stdout: 'pipe',
    stderr: 'pipe',
    env: { PATH: process.env.PATH ?? '', ...environment },
  });
  const [stdout, stderr, code] = await Promise.all([
    readableStreamToText(child.stdout),
    readableStreamToText(child.stderr),
    child.exited,
  ]);
  return { stdout, stderr, code };
}

/**
 * Runs a command of authrealm: in this process, or by the program in AUTHREALM_TEST_PROGRAM. A SQLite file may stay open until its
 * statements are collected, so a test about files, locks or kills starts a process.
 */
export async function runAuthrealm(words: readonly string[], environment: Environment = {}, input = '') {
  if (process.env.AUTHREALM_TEST_PROGRAM !== undefined)
    return runCommand([AUTHREALM, ...words], environment, input);
  const { runCli } = await import('../../src/cli/cli.ts');
  const texts = { stdout: '', stderr: '' };
  const streamInto = (name: keyof typeof texts) =>
    new Writable({
      write(chunk, _encoding, done) {
        texts[name] += chunk;
        done();
      },
    });
  const code = await runCli(
    words,
    { PATH: process.env.PATH, ...environment },
    {
      stdin: Readable.from([Buffer.from(input)]),
      stdout: streamInto('stdout'),
      stderr: streamInto('stderr'),
    },
  );
  return { ...texts, code };
}

/** Runs `client create` on this database, which may be in use. */
export function runClientCreate({ args }: Pick<TestDatabase, 'args'>, scope: string, ...options: string[]) {
  const required = ['--name', 'n', '--scope', scope, ...args];
  return runAuthrealm(['client', 'create', ...required, ...options]);
}
