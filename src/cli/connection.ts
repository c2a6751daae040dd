import { type Command, Option } from 'commander';
import { AuthrealmError, connect, type Directory } from '../client/client.ts';
import { readSettingFile } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import { printable } from './table.ts';

/** The secret of the client, for commands that speak to a running service. It is no option: command lines are seen. */
export const CLIENT_SECRET_VARIABLE = 'AUTHREALM_CLIENT_SECRET';

const URL_FALLBACK = 'http://127.0.0.1:8080';

export interface ConnectionOptions {
  readonly url?: string;
  readonly clientId?: string;
  readonly clientSecretFile?: string;
  readonly allowPlainHttp?: true;
}

/** Gives a command the options that say which service it speaks to, and as whom. Their variables are the same for all. */
export function addConnection(command: Command): Command {
  return command
    .addOption(
      new Option('--url <URL>', `where the service is (${URL_FALLBACK} unless given)`).env('AUTHREALM_URL'),
    )
    .addOption(new Option('--client-id <ID>', 'the client that asks').env('AUTHREALM_CLIENT_ID'))
    .addOption(
      new Option(
        '--client-secret-file <FILE>',
        `file with its secret; or else in ${CLIENT_SECRET_VARIABLE}`,
      ).env('AUTHREALM_CLIENT_SECRET_FILE'),
    )
    .addOption(
      new Option('--allow-plain-http', 'plain http to another machine: the secret crosses the network').env(
        'AUTHREALM_ALLOW_PLAIN_HTTP',
      ),
    );
}

/** Throws a Refusal that names everything that is missing. */
export function connectBy(options: ConnectionOptions, secretGiven: string | undefined): Directory {
  const { url = URL_FALLBACK, clientId, clientSecretFile: file, allowPlainHttp = false } = options;
  const clientSecret =
    file === undefined ? secretGiven : readSettingFile('--client-secret-file', file).trim();
  const missing: string[] = [];
  if (!clientId) missing.push('--client-id is missing: authrealm client create makes a client');
  if (!clientSecret)
    missing.push(`the client's secret is missing: --client-secret-file, or ${CLIENT_SECRET_VARIABLE}`);
  if (!clientId || !clientSecret) throw new Refusal(missing.join('\n'), { isUsage: true });
  try {
    return connect({ url, allowPlainHttp, clientId, clientSecret });
  } catch (error) {
    // The library's options by the names they have here.
    if (error instanceof TypeError) {
      const message = error.message.replace('allowPlainHttp: true', '--allow-plain-http');
      throw new Refusal(`--${message}`, { isUsage: true });
    }
    throw error;
  }
}

/** What the service refused, in its words. Anything else is passed on. */
export function refusalBy(error: unknown): unknown {
  return error instanceof AuthrealmError ? new Refusal(printable(error.message)) : error;
}
