/** The modules that a module may import: values and types, or types only. */
export interface ImportRule {
  readonly any: readonly string[];
  readonly types?: readonly string[];
}

/** The modules: folders of src/ and single files in it. Every rule is used. */
export const IMPORT_RULES: Readonly<Record<string, ImportRule>> = {
  domain: { any: [] },
  platform: { any: ['domain'] },
  metrics: { any: ['domain', 'platform'] },
  workers: { any: ['domain', 'platform', 'store'] },
  store: { any: ['audit', 'domain', 'platform'], types: ['auth', 'directory', 'doctor', 'events'] },
  doctor: { any: ['domain'], types: ['directory'] },
  outbound: { any: ['domain'] },
  jobs: { any: ['domain'], types: ['audit', 'directory', 'store'] },
  events: { any: ['domain'], types: ['auth', 'directory', 'jobs', 'outbound', 'store'] },
  audit: { any: ['domain'], types: ['auth', 'directory', 'jobs'] },
  auth: { any: ['domain', 'platform'], types: ['directory', 'doctor'] },
  transfer: { any: ['directory', 'domain'] },
  directory: { any: ['domain'] },
  client: { any: ['domain'] },
  http: { any: ['auth', 'domain', 'events', 'metrics', 'platform'], types: ['audit', 'directory'] },
  config: { any: ['domain', 'outbound', 'platform', 'store'], types: ['auth'] },
  service: {
    any: [
      'audit',
      'auth',
      'config',
      'directory',
      'domain',
      'events',
      'http',
      'jobs',
      'metrics',
      'outbound',
      'platform',
      'store',
      'workers',
    ],
  },
  cli: {
    any: [
      'audit',
      'auth',
      'client',
      'config',
      'directory',
      'doctor',
      'domain',
      'events',
      'http',
      'jobs',
      'metrics',
      'platform',
      'service',
      'store',
      'transfer',
      'workers',
    ],
  },
  main: { any: ['cli', 'workers'] },
};

/** External modules, and the modules that may import them. */
export const EXTERNAL_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  bun: ['store'],
  'bun:ffi': ['store'],
  'bun:sqlite': ['store'],
  commander: ['cli'],
  jose: ['auth'],
  standardwebhooks: ['events'],
  zod: ['auth', 'directory', 'domain', 'http', 'store', 'transfer'],
  'zod-openapi': ['http'],
  'node:async_hooks': ['platform'],
  'node:crypto': ['audit', 'auth', 'doctor', 'events'],
  'node:dns': ['outbound'],
  'node:fs': ['auth', 'cli', 'config', 'platform', 'store'],
  'node:http': ['outbound'],
  'node:https': ['outbound'],
  'node:net': ['domain', 'outbound'],
  'node:os': ['cli', 'service', 'workers'],
  'node:path': ['auth', 'cli', 'platform', 'service', 'store'],
  'node:readline/promises': ['cli'],
  'node:stream': ['platform'],
  'node:tls': ['outbound'],
  'node:tty': ['platform'],
};
