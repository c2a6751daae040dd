import type { Command } from 'commander';
import type { Settings } from '../app/config/parse.ts';
import { urlOf } from '../http/server/url.ts';
import { Refusal } from '../model/fault.ts';
import { printLine } from '../ops/process/standard_streams.ts';
import { addSettings, type CliContext } from './context.ts';
import { printable } from './table.ts';

/** Less than the timeout of the image's health check, which then shows the sentence. */
const WAIT_MS_MAX = 4_000;

/** `ready`: the health check of a container that has no other program. It reads the settings that `serve` listens by. */
export function addReady(program: Command, context: CliContext): void {
  addSettings(program.command('ready'), ['config', 'host', 'port', 'tlsCert', 'tlsKey'])
    .description('check that the service at an address answers lookups; fail otherwise')
    .action(async (_options: object, command: Command) => {
      await assertReady(readinessUrl(context.settingsOf(command)));
      printLine('ready');
    });
}

/** A wildcard address is checked on loopback. */
function readinessUrl({ host, port, tlsCert }: Settings): string {
  const hosts: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  return `${urlOf(hosts[host] ?? host, port, tlsCert !== undefined)}/readyz`;
}

async function assertReady(url: string): Promise<void> {
  let response: Response;
  try {
    response = await fetch(url, {
      signal: AbortSignal.timeout(WAIT_MS_MAX),
      redirect: 'manual',
      proxy: false,
      // The certificate has the public name. The request has no secret.
      tls: { rejectUnauthorized: false },
    });
  } catch (error) {
    throw new Refusal(noAnswerText(url, error as Error & { readonly code?: unknown }));
  }
  if (response.ok) return;
  const failing = await failingDependencies(response);
  const names = failing.length > 0 ? `: in trouble: ${printable(failing.join(', '))}` : '';
  throw new Refusal(`not ready: ${url} answered ${response.status}${names}`);
}

function noAnswerText(url: string, { name, code }: Error & { readonly code?: unknown }): string {
  if (name === 'TimeoutError') return `no answer from ${url} within ${WAIT_MS_MAX / 1_000} s`;
  if (code === 'ECONNREFUSED') return `no service listens on ${url}: start it, or pass --port`;
  return `no answer from ${url} (${code ?? name}): pass the --host, --port and TLS files of the service`;
}

/** The dependencies that a readiness response names as not `ok`; none of another text. */
async function failingDependencies({ body }: Response): Promise<readonly string[]> {
  try {
    // The first part: the response of the service is short, and whatever else listens on the port may send without end.
    for await (const chunk of body ?? []) {
      const { dependencies } = JSON.parse(new TextDecoder().decode(chunk)) as { dependencies: object };
      return Object.entries(dependencies).flatMap(([name, state]) => (state === 'ok' ? [] : [name]));
    }
  } catch {}
  return [];
}
