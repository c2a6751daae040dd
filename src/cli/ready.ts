import type { Command } from 'commander';
import type { Settings } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import { LIMITS } from '../domain/limits.ts';
import { addSettings, type CliContext } from './context.ts';

/** `ready`: the health check of a container that has no other program. It reads the settings that `serve` listens by. */
export function addReady(program: Command, context: CliContext): void {
  addSettings(program.command('ready'), ['host', 'port', 'tlsCert', 'tlsKey'])
    .description('check that the service on this machine answers lookups; fail otherwise')
    .action(async (_options: object, command: Command) => {
      await assertReady(readinessUrl(context.settingsOf(command)));
      console.log('ready');
    });
}

/** An address that means all addresses is asked on loopback. */
function readinessUrl({ host, port, tlsCert }: Settings): string {
  const hosts: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  const name = hosts[host] ?? host;
  return `${tlsCert ? 'https' : 'http'}://${name.includes(':') ? `[${name}]` : name}:${port}/readyz`;
}

async function assertReady(url: string): Promise<void> {
  let response: Response;
  try {
    response = await fetch(url, {
      signal: AbortSignal.timeout(LIMITS.answerMsMax),
      proxy: false,
      // The certificate has the public name. The request has no secret.
      tls: { rejectUnauthorized: false },
    });
  } catch (error) {
    throw new Refusal(`no answer from ${url}: ${(error as Error).message}`);
  }
  if (response.ok) return;
  throw new Refusal(`not ready: ${url} answered ${response.status} ${await response.text()}`);
}
