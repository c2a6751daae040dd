import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BenchServer, startServer } from './server.ts';

/** One real answer of the service: what the references repeat, byte for byte, headers included. */
export interface Sample {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Headers that every server writes by itself. */
const OWN = new Set(['date', 'content-length', 'connection', 'keep-alive']);

export async function sampleOf(answer: Response): Promise<Sample> {
  const headers = Object.fromEntries([...answer.headers].filter(([name]) => !OWN.has(name)));
  return { headers, body: await answer.text() };
}

/** nginx with one worker, answering the sample from its configuration. */
export function startNginx(folder: string, port: number, { headers, body }: Sample): Promise<BenchServer> {
  const { 'content-type': type, ...others } = headers;
  const quoted = (text: string) => `'${text.replace(/['\\]/g, '\\$&')}'`;
  const added = Object.entries(others).map(([name, value]) => `add_header ${name} ${quoted(value)};`);
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 1000000000; server_tokens off;
  server { listen 127.0.0.1:${port}; default_type ${type}; ${added.join(' ')} return 200 ${quoted(body)}; }
}`,
  );
  chmodSync(folder, 0o755);
  return startServer(['nginx', '-c', file], port);
}

/** `Bun.serve` and nothing else, answering the sample. */
export function startConstant(folder: string, port: number, sample: Sample): Promise<BenchServer> {
  const file = join(folder, 'sample.json');
  writeFileSync(file, JSON.stringify(sample));
  return startServer([process.execPath, join(import.meta.dir, 'constant.ts'), String(port), file], port);
}
