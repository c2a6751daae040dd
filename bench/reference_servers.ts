import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BenchServer, startServer } from './server.ts';

/** One response of the service, which the reference servers return byte for byte, headers included. */
export interface SampleResponse {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Headers that every server sets itself. */
const SERVER_HEADERS = new Set(['date', 'content-length', 'connection', 'keep-alive']);

export async function toSample(response: Response): Promise<SampleResponse> {
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !SERVER_HEADERS.has(name)));
  return { headers, body: await response.text() };
}

/** nginx with one worker, which returns the sample from its configuration. */
export function startNginx(
  folder: string,
  port: number,
  { headers, body }: SampleResponse,
): Promise<BenchServer> {
  const { 'content-type': type, ...others } = headers;
  const quoted = (text: string) => `'${text.replace(/['\\]/g, '\\$&')}'`;
  const headerDirectives = Object.entries(others).map(
    ([name, value]) => `add_header ${name} ${quoted(value)};`,
  );
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 1000000000; server_tokens off;
  server { listen 127.0.0.1:${port}; default_type ${type}; ${headerDirectives.join(' ')} return 200 ${quoted(body)}; }
}`,
  );
  chmodSync(folder, 0o755);
  return startServer(['nginx', '-c', file], port);
}

/** A bare `Bun.serve` that returns the sample. */
export function startConstant(folder: string, port: number, sample: SampleResponse): Promise<BenchServer> {
  const file = join(folder, 'sample.json');
  writeFileSync(file, JSON.stringify(sample));
  return startServer(
    [process.execPath, join(import.meta.dir, 'constant_server.ts'), String(port), file],
    port,
  );
}

interface HandwrittenTarget {
  /** The file, or the URL of PostgreSQL. */
  readonly database: string;
  readonly baseUrl: string;
  readonly token: string;
  readonly isPinned?: boolean;
}

/** `Bun.serve` around the read of a lookup, written by hand (bench/handwritten_server.ts). */
export function startHandwritten(
  port: number,
  { database, baseUrl, token, isPinned = true }: HandwrittenTarget,
): Promise<BenchServer> {
  const script = join(import.meta.dir, 'handwritten_server.ts');
  return startServer([process.execPath, script, String(port), database, baseUrl], port, {
    isPinned,
    environment: { BENCH_TOKEN: token },
  });
}
