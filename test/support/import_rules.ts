/**
 * The modules, folders of src/ and the file main.ts, from the lowest, and the modules from which each may import values: what it runs.
 * A module imports values of modules above it in this list alone. A type is written where the thing is made, and imported from there.
 * Every rule is used.
 */
export const IMPORT_RULES: Readonly<Record<string, readonly string[]>> = {
  model: [],
  client: ['model'],
  sql: ['model'],
  log: ['model', 'sql'],
  access: ['log', 'model', 'sql'],
  sign_in: ['log', 'model', 'sql'],
  records: ['access', 'log', 'model', 'sign_in', 'sql'],
  deliver: ['access', 'log', 'model', 'sql'],
  ops: ['access', 'deliver', 'log', 'model', 'records', 'sign_in', 'sql'],
  http: ['access', 'deliver', 'model', 'ops'],
  compat: ['http', 'model'],
  app: ['access', 'compat', 'deliver', 'http', 'log', 'model', 'ops', 'records', 'sign_in', 'sql'],
  cli: ['access', 'app', 'client', 'deliver', 'http', 'log', 'model', 'ops', 'records', 'sign_in', 'sql'],
  main: ['cli', 'ops'],
};

/** The modules below it in that list of which each knows types. */
export const TYPES_OF_LATER_MODULES: Readonly<Record<string, readonly string[]>> = {
  log: ['records', 'sign_in'],
  sign_in: ['records'],
  http: ['app'],
};

/** External modules, and the modules that may import them. */
export const EXTERNAL_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  bun: ['sql'],
  'bun:ffi': ['sql'],
  'bun:sqlite': ['ops', 'records', 'sql'],
  commander: ['cli'],
  jose: ['access'],
  standardwebhooks: ['deliver'],
  zod: ['access', 'compat', 'http', 'log', 'model', 'ops', 'records', 'sql'],
  'zod-openapi': ['app', 'http'],
  'node:async_hooks': ['ops'],
  'node:crypto': ['access', 'deliver', 'log', 'ops', 'sign_in'],
  'node:fs': ['access', 'app', 'cli', 'model', 'ops', 'sql'],
  'node:http': ['access'],
  'node:https': ['access'],
  'node:net': ['access', 'model'],
  'node:os': ['app', 'cli', 'ops'],
  'node:path': ['access', 'cli', 'model', 'ops', 'sql'],
  'node:readline/promises': ['cli'],
  'node:stream': ['ops'],
  'node:timers/promises': ['ops'],
  'node:tls': ['access'],
  'node:tty': ['ops'],
};
