import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

interface Source {
  readonly path: string;
  readonly text: string;
}

function sources(pattern: string): readonly Source[] {
  return [...new Bun.Glob(pattern).scanSync(ROOT)]
    .filter((path) => !path.includes('node_modules'))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));
}

const src = sources('src/**/*.ts');

/**
 * Which rooms a room may import. `types` doors are open to type imports only. The roots of the house (app, config,
 * ambient, durable, exit, main, vault) are rooms of one file.
 */
const DOORS: Readonly<
  Record<string, { readonly any: readonly string[]; readonly types?: readonly string[] }>
> = {
  domain: { any: [] },
  directory: { any: ['domain'] },
  access: { any: ['domain', 'durable'], types: ['directory'] },
  audit: { any: ['domain', 'durable'], types: ['directory', 'access', 'leases'] },
  leases: { any: ['domain'], types: ['directory'] },
  feed: { any: ['domain'], types: ['directory'] },
  webhooks: { any: ['domain', 'feed', 'leases'], types: ['access', 'directory', 'outbound'] },
  retention: { any: ['domain', 'leases'], types: ['audit', 'webhooks'] },
  telling: {
    any: ['config', 'domain', 'feed', 'http', 'leases', 'observe', 'outbound', 'retention', 'webhooks'],
    types: ['access', 'directory', 'store'],
  },
  store: {
    any: ['domain', 'durable', 'audit'],
    types: ['directory', 'access', 'feed', 'leases', 'webhooks'],
  },
  children: { any: ['domain'] },
  beside: { any: ['domain', 'children'], types: ['audit', 'roles'] },
  roles: { any: ['domain', 'children', 'exit', 'passwords', 'store'], types: ['beside'] },
  passwords: { any: ['domain', 'children'] },
  outbound: { any: ['domain'] },
  observe: { any: [] },
  http: { any: ['domain', 'access', 'observe', 'feed', 'webhooks'], types: ['directory', 'audit'] },
  client: { any: ['domain'] },
  cli: {
    any: [
      'domain',
      'directory',
      'access',
      'audit',
      'http',
      'observe',
      'passwords',
      'children',
      'client',
      'app',
      'beside',
      'config',
      'ambient',
      'vault',
      'durable',
      'exit',
      'witnesses',
      'webhooks',
    ],
    types: ['roles', 'store'],
  },
  administration: { any: ['audit', 'domain'], types: ['access', 'http', 'observe', 'store'] },
  counting: { any: ['domain', 'access', 'audit', 'http'], types: ['observe', 'store'] },
  measures: { any: ['domain'], types: ['children', 'observe', 'store'] },
  ambient: { any: ['domain'] },
  durable: { any: [] },
  exit: { any: [], types: ['domain'] },
  config_values: { any: [], types: ['domain'] },
  config_databases: { any: ['store'], types: ['access'] },
  config_settings: { any: ['config_values', 'domain', 'store'], types: ['observe'] },
  config: { any: ['config_databases', 'config_settings', 'domain', 'outbound'] },
  app: {
    any: [
      'domain',
      'directory',
      'access',
      'audit',
      'beside',
      'store',
      'http',
      'observe',
      'outbound',
      'passwords',
      'children',
      'config',
      'administration',
      'authority',
      'counting',
      'measures',
      'witnesses',
      'telling',
      'vault',
    ],
  },
  vault: { any: ['access', 'audit', 'config', 'domain', 'store'] },
  authority: { any: ['access', 'audit', 'config', 'domain', 'outbound'], types: ['observe', 'store'] },
  witnesses: {
    any: ['audit', 'config', 'domain', 'durable', 'leases', 'outbound', 'store'],
    types: ['observe'],
  },
  main: { any: ['cli', 'roles'] },
};

/** Modules from outside the house, and the rooms that may use them. */
const GUESTS: Readonly<Record<string, readonly string[]>> = {
  zod: ['domain', 'directory', 'store', 'access', 'http'],
  'zod-openapi': ['http'],
  jose: ['access'],
  pino: ['observe'],
  'prom-client': ['observe'],
  commander: ['cli'],
  'cli-progress': ['cli'],
  'bun:ffi': ['store'],
  bun: ['store'],
  'bun:sqlite': ['store'],
  'node:crypto': ['access', 'audit', 'webhooks'],
  'node:dns': ['outbound'],
  'node:fs': ['access', 'cli', 'config', 'durable', 'store', 'vault'],
  'node:http': ['outbound'],
  'node:https': ['outbound'],
  'node:net': ['outbound'],
  'node:os': ['children', 'cli', 'roles', 'witnesses'],
  'node:path': ['access', 'cli', 'store', 'vault'],
  'node:tls': ['outbound'],
  'node:url': ['app', 'beside'],
};

/** The rooms of the console, which runs in browsers: what of it, and of the service, each may import. */
const CONSOLE_DOORS: Readonly<Record<string, readonly string[]>> = {
  description: [],
  described: ['description'],
  observable: ['preact/hooks'],
  session: ['observable'],
  api: ['authrealm:described', 'description', 'observable', 'preact/hooks', 'session'],
  parts: ['api', 'description', 'observable', 'preact', 'preact/hooks', 'session'],
  form: [
    'api',
    'authrealm:described',
    'description',
    'observable',
    'parts',
    'preact',
    'preact/hooks',
    'session',
  ],
  layout: ['api', 'authrealm:described', 'observable', 'parts', 'preact', 'preact/hooks', 'session'],
  openapi: ['api', 'parts', 'preact', 'preact/hooks'],
  docs: ['api', 'layout', 'observable', 'openapi', 'parts', 'preact', 'preact/hooks'],
  sign_in: ['api', 'layout', 'observable', 'parts', 'preact', 'preact/hooks', 'session'],
  pages: [
    ...['api', 'authrealm:described', 'description', 'form', 'layout', 'observable', 'openapi', 'parts'],
    ...['preact', 'preact/hooks', 'session', 'src/client', 'src/directory', 'uplot'],
  ],
  main: ['layout', 'observable', 'pages', 'parts', 'preact', 'preact/hooks', 'session', 'sign_in'],
};

function roomOf(path: string): string {
  return (relative('src', path).split('/')[0] ?? '').replace(/\.ts$/, '');
}

interface Import {
  readonly from: string;
  readonly isType: boolean;
}

/** Imports of a file; one is a type import when everything it brings is. */
function importsOf(text: string): readonly Import[] {
  const atStart = [
    ...text.matchAll(/^(?:import|export) (type )?(?:\{([^}]*)\}|\*|\w+)?[^'"\n]*?from '([^']+)'/gms),
  ].map(([, type, names = '', from = '']) => ({
    from,
    isType: type !== undefined || names.split(',').every((name) => /^\s*(type .*)?$/.test(name)),
  }));
  const whenNeeded = [...text.matchAll(/\bimport\('([^']+)'\)/g)];
  return [...atStart, ...whenNeeded.map(([, from = '']) => ({ from, isType: false }))];
}

describe('the arrows between rooms', () => {
  for (const { path, text } of src) {
    test(path, () => {
      const room = roomOf(path);
      const doors = DOORS[room];
      expect(doors).toBeDefined();
      for (const { from, isType } of importsOf(text)) {
        if (!from.startsWith('.')) {
          expect([from, GUESTS[from]?.includes(room)]).toEqual([from, true]);
          continue;
        }
        const target = roomOf(join(dirname(path), from));
        const isOpen =
          target === room ||
          doors?.any.includes(target) ||
          (isType && doors?.types?.includes(target) === true);
        expect([from, isOpen]).toEqual([from, true]);
      }
    });
  }
});

describe('the arrows between rooms of the console', () => {
  for (const { path, text } of sources('console/**/*.{ts,tsx}')) {
    test(path, () => {
      const room = (path.split('/')[1] ?? '').replace(/(\.d)?\.tsx?$/, '');
      for (const { from } of importsOf(text)) {
        const [house, first = ''] = join(dirname(path), from).split('/');
        const inside = house === 'console' ? first.replace(/\.tsx?$/, '') : `${house}/${first}`;
        const target = from.startsWith('.') ? inside : from;
        expect([from, target === room || CONSOLE_DOORS[room]?.includes(target)]).toEqual([from, true]);
      }
    });
  }
});

/** What stands nowhere but in the one file that owns it. */
const OWNED: readonly [RegExp, string][] = [
  [/Date\.now\(|new Date\(\)|Math\.random\(\) \* 1e/, 'src/ambient.ts'],
  [/Bun\.serve\b/, 'src/http/server.ts'],
  [/process\.env\b/, 'src/main.ts'],
];

const BANNED: readonly [RegExp, string][] = [
  [/\bas any\b|: any\b/, 'a real type'],
  [/\/\/ ?(TODO|FIXME|XXX)/, 'an issue'],
  [/\bexport default\b/, 'a named export'],
  [/@ts-ignore|@ts-expect-error|biome-ignore/, 'the type or the rule itself'],
];

describe('style', () => {
  const all = [
    ...src,
    ...sources('test/**/*.ts'),
    ...sources('bench/**/*.ts'),
    ...sources('scripts/**/*.ts'),
    ...sources('prove/**/*.ts'),
    ...sources('force/**/*.ts'),
    ...sources('debian/**/*.ts'),
    ...sources('console/**/*.{ts,tsx,css}'),
  ];

  for (const { path, text } of all) {
    test(path, () => {
      expect(text.split('\n').length).toBeLessThanOrEqual(400);
      if (path === 'test/tidy.test.ts') return;
      const code = text.replace(/^\s*\/?\*.*$/gm, '');
      for (const [pattern, better] of BANNED)
        expect([better, pattern.exec(code)?.[0]]).toEqual([better, undefined]);
      expect(path).not.toMatch(/(^|\/)(utils?|helpers?|common|shared|tools?|misc)(\/|\.)/);
    });
  }

  for (const [pattern, owner] of OWNED) {
    test(`${pattern.source} stands in ${owner} alone`, () => {
      const code = src.filter(({ text }) => pattern.test(text.replace(/^\s*(\/\/|\/?\*).*$/gm, '')));
      expect(code.map(({ path }) => path)).toEqual([owner]);
    });
  }

  test('SQL stands in store/ alone', () => {
    const sql = /\b(select [\w*, ]+ from|insert into|delete from|update \w+ set)\b/;
    expect(src.filter(({ text }) => sql.test(text)).map(({ path }) => roomOf(path))).toEqual(
      src.filter(({ text }) => sql.test(text)).map(() => 'store'),
    );
  });

  test('no file of src is imported by nobody', () => {
    const imported = new Set(
      src.flatMap(({ path, text }) => importsOf(text).map(({ from }) => join(dirname(path), from))),
    );
    const orphans = src
      .map(({ path }) => path)
      .filter((path) => !imported.has(path) && path !== 'src/main.ts');
    expect(orphans).toEqual([]);
  });
});
