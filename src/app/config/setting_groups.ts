import { DATABASE_SETTINGS } from './database_settings.ts';
import type { SettingName } from './settings.ts';

/** The headings under which help texts list the settings. */
export const SETTING_GROUPS: Readonly<Record<string, readonly SettingName[]>> = {
  Database: DATABASE_SETTINGS,
  Listener: ['host', 'port', 'baseUrl', 'processes', 'drainDelay', 'tlsCert', 'tlsKey', 'corsOrigins'],
  'Reverse proxy': ['trustedProxies'],
  'Rate limits': ['clientRate', 'addressRate', 'badTokenRate', 'grantRate'],
  'Clients, tokens and passwords': [
    'tokenLifetime',
    'passwordCost',
    'bootstrapClientFile',
    'issuersFile',
    'strictIssuers',
  ],
  Realms: ['accountRealm'],
  Console: ['noConsole'],
  'Outgoing requests': ['offline', 'allowPrivate'],
  'Audit log and retention': ['logSignIns', 'retentionDays', 'checkpointFile'],
  'Logs and metrics': ['requestLogging', 'logFormat', 'metrics'],
};

export function groupOf(name: SettingName): string {
  const [heading] = Object.entries(SETTING_GROUPS).find(([, names]) => names.includes(name)) ?? [];
  if (heading === undefined) throw new Error(`${name} has no heading in SETTING_GROUPS`);
  return heading;
}
