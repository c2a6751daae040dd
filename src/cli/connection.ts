import type { Command } from 'commander';
import { type Environment, readSettingFile } from '../app/config/parse.ts';
import { AuthrealmError, connect } from '../client/client.ts';
import { Refusal } from '../model/fault.ts';
import { addSettings, CONNECTION_VARIABLES } from './context.ts';
import { printable } from './table.ts';

const URL_FALLBACK = 'http://127.0.0.1:8080';

export interface ConnectionOptions {
  readonly url?: string;
  readonly clientId?: string;
  readonly clientSecretFile?: string;
  readonly allowPlainHttp?: true;
}

export function addConnection(command: Command): Command {
  return addSettings(command, ['config'])
    .option('--url <URL>', `URL of the service (${CONNECTION_VARIABLES.url}, default ${URL_FALLBACK})`)
    .option('--client-id <ID>', `client ID (${CONNECTION_VARIABLES.clientId})`)
    .option(
      '--client-secret-file <FILE>',
      `file with the client secret, default the value of ${CONNECTION_VARIABLES.clientSecret}`,
    )
    .option('--allow-plain-http', 'allow http to another host; the secret crosses the network unencrypted');
}

/**
 * The service that a command calls, by these options, and the variables of the environment for those left out; `refusalOf`: the
 * Refusal for a failed request, with the next step, any other error unchanged. Throws a Refusal that names all missing options.
 */
export function connectBy(options: ConnectionOptions, environment: Environment) {
  const { clientSecretFile: file, allowPlainHttp = false } = options;
  const url = options.url ?? environment[CONNECTION_VARIABLES.url] ?? URL_FALLBACK;
  const clientId = options.clientId ?? environment[CONNECTION_VARIABLES.clientId];
  const clientSecret =
    file === undefined
      ? environment[CONNECTION_VARIABLES.clientSecret]
      : readSettingFile('--client-secret-file', file).trim();
  const missing: string[] = [];
  if (!clientId) missing.push('--client-id is missing: create a client with "authrealm client create"');
  if (!clientSecret)
    missing.push(
      `the client secret is missing: pass --client-secret-file, or set ${CONNECTION_VARIABLES.clientSecret}`,
    );
  if (!clientId || !clientSecret) throw new Refusal(missing.join('\n'), { isUsage: true });
  try {
    const directory = connect({ url, allowPlainHttp, clientId, clientSecret });
    return { directory, refusalOf: (error: unknown) => refusalFor(error, url) };
  } catch (error) {
    // Errors of the library name its options; the command line has other names for them.
    if (error instanceof TypeError) {
      const message = error.message.replace('allowPlainHttp: true', '--allow-plain-http');
      throw new Refusal(`--${message}`, { isUsage: true });
    }
    throw error;
  }
}

function refusalFor(error: unknown, url: string): unknown {
  if (!(error instanceof AuthrealmError)) return error;
  const { message, reason, status = 0, errors } = error;
  if (reason !== undefined) return new Refusal(unreachableText(url, reason));
  const isForeign = errors.length === 0 && status >= 400;
  const advice = isForeign ? `check that an authrealm service answers at ${url}` : STATUS_ADVICE.get(status);
  return new Refusal(advice === undefined ? printable(message) : `${printable(message)}: ${advice}`);
}

/** What to do about an error response, by its status. */
const STATUS_ADVICE: ReadonlyMap<number, string> = new Map([
  [
    401,
    'check the client ID and the secret with "authrealm client list", or issue a new secret with "authrealm client rotate"',
  ],
  [
    403,
    'the client lacks a scope or the realm. "authrealm client list" shows its rights, "authrealm client update" changes them',
  ],
  [404, 'check the IDs with "authrealm list"; a client sees only its own realms'],
]);

/** The URL has no password: `connect` rejects it. `reason`: the error code of the runtime, or that the time was up. */
function unreachableText(url: string, reason: string): string {
  if (reason === 'ECONNREFUSED')
    return `cannot reach ${url}: is "authrealm serve" running? If it listens elsewhere, pass its URL with --url`;
  const advice = /CERT|SELF_SIGNED|VERIFY/.test(reason)
    ? 'use the host name of the certificate, and pass that of its authority in the variable NODE_EXTRA_CA_CERTS'
    : 'check the URL in --url, whether the service has TLS, and the network';
  return `cannot reach ${url} (${reason}): ${advice}`;
}
