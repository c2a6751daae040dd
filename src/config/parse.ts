import { readFileSync } from 'node:fs';
import { Refusal } from '../domain/fault.ts';
import { isLoopbackHost } from '../domain/loopback.ts';
import { costRule, type PasswordCost } from '../domain/password.ts';
import { isSendable } from '../outbound/target.ts';
import { databaseContradictions, disclosure, withPasswordFiles } from './databases.ts';
import { SETTINGS, type Setting, type SettingName, type Settings } from './settings.ts';

export { checkpointFileOf, databaseContradictions, disclosure, masterKeySource } from './databases.ts';
export {
  CHECKPOINT_SINK_SETTINGS,
  DATABASE_SETTINGS,
  SETTINGS,
  type SettingName,
  type Settings,
} from './settings.ts';

/** What was written on the command line, by setting. */
export type Flags = Partial<Record<SettingName, string>>;

type Environment = Readonly<Record<string, string | undefined>>;

interface ReadOptions {
  /** Variables that are no settings, and that commands read. */
  readonly otherNames?: readonly string[];
  /** The command listens: what an address needs is judged only then. */
  readonly listens?: boolean;
}

/**
 * Reads the whole table from flags and environment. Throws one Refusal that names every mistake; a value that could be
 * a secret is not repeated.
 */
export function readSettings(
  flags: Flags,
  environment: Environment,
  { otherNames = [], listens = false }: ReadOptions = {},
): Settings {
  const complaints = unknownNames(environment, otherNames);
  const values: Partial<Record<SettingName, unknown>> = {};
  for (const [name, row] of Object.entries(SETTINGS) as [SettingName, Setting<unknown>][]) {
    const given = flags[name] ?? environment[row.env];
    const raw = given ?? row.fallback;
    if (raw === undefined) continue;
    const value = row.parse(raw);
    if (value !== undefined) values[name] = value;
    else complaints.push(`${sourceOf(row, flags[name])} must be ${row.complaint?.(raw) ?? row.expects}`);
  }
  const settings = values as Settings;
  complaints.push(...contradictions(values as Partial<Settings>));
  for (const name of ['database', 'migrateDatabase'] as const) {
    const { flag, env } = SETTINGS[name];
    if (flags[name] !== undefined) complaints.push(...disclosure(flag ?? '', env, settings[name]));
  }
  if (listens) complaints.push(...exposures(values as Partial<Settings>));
  if (complaints.length > 0) throw new Refusal(complaints.join('\n'), { isUsage: true });
  return Object.freeze({ ...settings, ...withPasswordFiles(settings) });
}

/** A setting as it is in force, and where that was said. */
export interface SettingOrigin {
  readonly env: string;
  /** As it was written; a secret is masked, and what is absent is empty. */
  readonly value: string;
  readonly from: 'flag' | 'environment' | 'default' | 'not given';
}

/** Every row of the table, in its order. */
export function originsOf(flags: Flags, environment: Environment): readonly SettingOrigin[] {
  return (Object.entries(SETTINGS) as [SettingName, Setting<unknown>][]).map(([name, row]) => {
    const given = flags[name] ?? environment[row.env];
    const value = given ?? row.fallback ?? '';
    const said = flags[name] === undefined ? 'environment' : 'flag';
    const absent = row.fallback === undefined ? 'not given' : 'default';
    return {
      env: row.env,
      value: row.secret && value !== '' ? '***' : (row.told?.(value) ?? value),
      from: given === undefined ? absent : said,
    };
  });
}

function sourceOf(row: Setting<unknown>, flag: string | undefined): string {
  return flag === undefined ? row.env : `--${row.flag}`;
}

function unknownNames(environment: Environment, otherNames: readonly string[]): string[] {
  const known = new Set<string>([...Object.values(SETTINGS).map(({ env }) => env), ...otherNames]);
  return Object.keys(environment)
    .filter((name) => name.startsWith('AUTHREALM_') && !known.has(name))
    .map((name) => `${name} is no variable of authrealm; --help of the command lists them`);
}

/** Settings that do not go together; one that could not be read takes no part. */
function contradictions(settings: Partial<Settings>): string[] {
  const found = [...databaseContradictions(settings)];
  if ((settings.tlsCert === undefined) !== (settings.tlsKey === undefined)) {
    found.push('--tls-cert and --tls-key go together');
  }
  if (settings.offline && settings.issuersFile !== undefined) {
    found.push('--issuers-file needs the keys of its issuers, and --offline asks nobody: give one of them');
  }
  const { checkpointUrl, allowLoopbackWebhooks: allowLoopback = false } = settings;
  if (checkpointUrl !== undefined && !isSendable(checkpointUrl, { allowLoopback })) {
    found.push(
      '--checkpoint-url must be https at port 443, and an IP address in it a public one; on this machine, with --allow-loopback-webhooks, it may be any port and http',
    );
  }
  for (const name of ['clientRate', 'addressRate', 'badTokenRate'] as const) {
    const rate = settings[name];
    if (rate === undefined || rate === 'off' || rate.requests >= (settings.processes ?? 1)) continue;
    found.push(`--${SETTINGS[name].flag} must let each of the processes have one request at least`);
  }
  const { passwordMemory: memoryKib, passwordPasses: passes } = settings;
  const rule = memoryKib && passes ? costRule({ memoryKib, passes }) : undefined;
  if (rule !== undefined) found.push(`--password-memory and --password-passes ${rule}`);
  return found;
}

/** What a new password hash costs by these settings. */
export function passwordCost({ passwordMemory, passwordPasses }: Settings): PasswordCost {
  return { memoryKib: passwordMemory, passes: passwordPasses };
}

/** Whether events may be sent to a URL, as far as its host need not be asked. */
export function webhookRule({ allowLoopbackWebhooks: allowLoopback }: Settings): (url: string) => boolean {
  return (url) => isSendable(url, { allowLoopback });
}

/** What an address that others can reach needs. */
function exposures(settings: Partial<Settings>): string[] {
  const found: string[] = [];
  const hasTls = settings.tlsCert !== undefined && settings.tlsKey !== undefined;
  if (settings.host === undefined || isLoopbackHost(settings.host)) return found;
  if (settings.baseUrl === undefined) {
    found.push(
      `--host ${settings.host} is not loopback: say by --base-url what callers reach the service by`,
    );
  }
  if (!hasTls && !settings.behindProxy) {
    found.push(
      `--host ${settings.host} is not loopback: tokens would cross the network in clear text. Give --tls-cert and ` +
        '--tls-key, or --behind-proxy where a proxy ends TLS',
    );
  }
  if (settings.allowLoopbackDiscovery) {
    found.push(
      `--host ${settings.host} is not loopback: with --allow-loopback-discovery whoever creates profiles could have ` +
        'what listens on this machine alone be asked. Leave it out, or listen on loopback',
    );
  }
  if (settings.allowLoopbackWebhooks) {
    found.push(
      `--host ${settings.host} is not loopback: with --allow-loopback-webhooks what listens on this machine alone could ` +
        'be sent events. Leave it out, or listen on loopback',
    );
  }
  return found;
}

/** Certificate and key, read from their files. */
export function readTls({ tlsCert, tlsKey }: Settings): { cert: string; key: string } | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  return { cert: readSettingFile('--tls-cert', tlsCert), key: readSettingFile('--tls-key', tlsKey) };
}

/** The content of a file that a setting names. Throws Refusal where it cannot be read. */
export function readSettingFile(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Refusal(`${name}: ${(error as Error).message}`);
  }
}
