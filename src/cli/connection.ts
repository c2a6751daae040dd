import { type Command, Option } from 'commander';
import { AuthrealmError, connect, type DirectoryClient } from '../client/client.ts';
import { readSettingFile } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import { printable } from './table.ts';
import { CLIENT_SECRET_VARIABLE } from './variables.ts';

const URL_FALLBACK = 'http://127.0.0.1:8080';

export interface ConnectionOptions {
  readonly url?: string;
  readonly clientId?: string;
  readonly clientSecretFile?: string;
  readonly allowPlainHttp?: true;
}

/** Adds the options for the service and the client to a command. All commands share their environment variables. */
export function addConnection(command: Command): Command {
  return command
    .addOption(
      new Option('--url <URL>', `URL of the service (default: ${URL_FALLBACK})`).env('AUTHREALM_URL'),
    )
    .addOption(new Option('--client-id <ID>', 'client ID').env('AUTHREALM_CLIENT_ID'))
    .addOption(
      new Option(
        '--client-secret-file <FILE>',
        `file with the client secret (default: the value of ${CLIENT_SECRET_VARIABLE})`,
      ).env('AUTHREALM_CLIENT_SECRET_FILE'),
    )
    .addOption(
      new Option(
        '--allow-plain-http',
        'allow http to another host; the secret crosses the network unencrypted',
      ).env('AUTHREALM_ALLOW_PLAIN_HTTP'),
    );
}

/** Throws a Refusal that names all missing options. */
export function connectBy(options: ConnectionOptions, secretGiven: string | undefined): DirectoryClient {
  const { url = URL_FALLBACK, clientId, clientSecretFile: file, allowPlainHttp = false } = options;
  const clientSecret =
    file === undefined ? secretGiven : readSettingFile('--client-secret-file', file).trim();
  const missing: string[] = [];
  if (!clientId) missing.push('--client-id is missing: create a client with "authrealm client create"');
  if (!clientSecret)
    missing.push(`the client secret is missing: pass --client-secret-file, or set ${CLIENT_SECRET_VARIABLE}`);
  if (!clientId || !clientSecret) throw new Refusal(missing.join('\n'), { isUsage: true });
  try {
    return connect({ url, allowPlainHttp, clientId, clientSecret });
  } catch (error) {
    // Errors of the library name its options; the command line has other names for them.
    if (error instanceof TypeError) {
      const message = error.message.replace('allowPlainHttp: true', '--allow-plain-http');
      throw new Refusal(`--${message}`, { isUsage: true });
    }
    throw error;
  }
}

/** The Refusal for an error response of the service; returns any other error unchanged. */
export function refusalBy(error: unknown): unknown {
  return error instanceof AuthrealmError ? new Refusal(printable(error.message)) : error;
}
