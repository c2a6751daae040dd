import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EXTERNAL_IMPORTS, IMPORT_RULES, TYPES_OF_LATER_MODULES } from '../support/import_rules.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

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

/** The modules of the console, and the modules of the console, the service and packages that each may import. */
const CONSOLE_IMPORT_RULES: Readonly<Record<string, readonly string[]>> = {
  description: [],
  schema: ['description'],
  observable: ['preact/hooks'],
  session: ['observable'],
  api: ['authrealm:schema', 'description', 'observable', 'preact/hooks', 'session'],
  parts: ['api', 'description', 'observable', 'preact', 'preact/hooks', 'session'],
  form: [
    'api',
    'authrealm:schema',
    'description',
    'layout',
    'observable',
    'parts',
    'preact',
    'preact/hooks',
    'session',
    'src/client',
  ],
  layout: ['api', 'authrealm:schema', 'observable', 'parts', 'preact', 'preact/hooks', 'session'],
  openapi: ['api', 'parts', 'preact', 'preact/hooks'],
  docs: ['api', 'layout', 'observable', 'openapi', 'parts', 'preact', 'preact/hooks'],
  sign_in: ['api', 'layout', 'observable', 'parts', 'preact', 'preact/hooks', 'session'],
  pages: [
    ...['api', 'authrealm:schema', 'description', 'form', 'layout', 'observable', 'openapi', 'parts'],
    ...['preact', 'preact/hooks', 'session', 'src/client', 'src/model', 'src/ops'],
  ],
  main: ['layout', 'observable', 'pages', 'parts', 'preact', 'preact/hooks', 'session', 'sign_in'],
};

function moduleOf(path: string): string {
  return (relative('src', path).split('/')[0] ?? '').replace(/\.ts$/, '');
}

interface Import {
  readonly from: string;
  readonly isType: boolean;
}

/** The imports of a file. An import is a type import if all its names are types. */
function importsOf(text: string): readonly Import[] {
  const staticImports = [
    ...text.matchAll(/^(?:import|export) (type )?(?:\{([^}]*)\}|\*|\w+)?[^'"\n]*?from '([^']+)'/gms),
  ].map(([, type, names = '', from = '']) => ({
    from,
    isType: type !== undefined || names.split(',').every((name) => /^\s*(type .*)?$/.test(name)),
  }));
  const dynamicImports = [...text.matchAll(/\bimport\('([^']+)'\)/g)];
  return [...staticImports, ...dynamicImports.map(([, from = '']) => ({ from, isType: false }))];
}

describe('the values that each file of src imports follow the import rules', () => {
  for (const { path, text } of src) {
    test(path, () => {
      const module = moduleOf(path);
      const rules = IMPORT_RULES[module];
      expect(rules).toBeDefined();
      for (const { from, isType } of importsOf(text)) {
        if (!from.startsWith('.')) {
          expect([from, EXTERNAL_IMPORTS[from]?.includes(module)]).toEqual([from, true]);
          continue;
        }
        const target = moduleOf(join(dirname(path), from));
        const isAllowed = isType || target === module || rules?.includes(target) === true;
        expect([from, isAllowed]).toEqual([from, true]);
      }
    });
  }
});

/** The modules from which the files of each module import values, or types. */
function existingImports(areTypes: boolean): Readonly<Record<string, readonly string[]>> {
  const used = src.flatMap(({ path, text }) =>
    importsOf(text)
      .filter(({ from, isType }) => from.startsWith('.') && isType === areTypes)
      .map(({ from }) => ({ module: moduleOf(path), target: moduleOf(join(dirname(path), from)) })),
  );
  return Object.fromEntries(
    Object.keys(IMPORT_RULES).map((name) => {
      const targets = used.filter(({ module, target }) => module === name && target !== name);
      return [name, [...new Set(targets.map(({ target }) => target))].sort()];
    }),
  );
}

test('the import rules permit only imports that exist', () => {
  expect(IMPORT_RULES).toEqual(existingImports(false));
});

/** The modules that are listed after a module. */
const laterOf = (module: string, targets: readonly string[]) => {
  const modules = Object.keys(IMPORT_RULES);
  return targets.filter((target) => modules.indexOf(target) > modules.indexOf(module));
};

for (const [module, targets] of Object.entries(IMPORT_RULES)) {
  test(`${module} may import values only of modules listed before it`, () => {
    expect(laterOf(module, targets)).toEqual([]);
  });
}

test('the import rules list which modules know types of later ones', () => {
  const later = Object.entries(existingImports(true)).map(
    ([module, targets]) => [module, laterOf(module, targets)] as const,
  );
  expect(TYPES_OF_LATER_MODULES).toEqual(
    Object.fromEntries(later.filter(([, targets]) => targets.length > 0)),
  );
});

/** What runs statements: sql/, and the folders store/ of other modules. */
const RUNS_STATEMENTS = /^src\/(sql|\w+\/store)\//;

test('http and compat run nothing that runs statements', () => {
  const run = src
    .filter(({ path }) => ['http', 'compat'].includes(moduleOf(path)))
    .flatMap(({ path, text }) =>
      importsOf(text)
        .filter(({ from, isType }) => from.startsWith('.') && !isType)
        .map(({ from }) => join(dirname(path), from)),
    );
  expect(run.length).toBeGreaterThan(0);
  expect(run.filter((path) => RUNS_STATEMENTS.test(path))).toEqual([]);
});

const EXPORTED =
  /^export (?:declare )?(?:async )?(?:const|let|function\*?|class|interface|type) +(?<name>[A-Za-z_]\w*)/gm;

test('no two files of src export the same name', () => {
  const names = src.flatMap(({ text }) => [
    // The overloads of a function are one export.
    ...new Set([...text.matchAll(EXPORTED)].map(({ groups }) => groups?.name ?? '')),
  ]);
  expect(names.length).toBeGreaterThan(0);
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});

test('src has no import cycle, type imports included', () => {
  const imports = new Map(
    src.map(({ path, text }) => [
      path,
      importsOf(text)
        .filter(({ from }) => from.startsWith('.'))
        .map(({ from }) => join(dirname(path), from)),
    ]),
  );
  // A file whose imports are all free of cycles is free of cycles; the files that remain are not.
  for (let size = -1; size !== imports.size; ) {
    size = imports.size;
    for (const [path, targets] of imports)
      if (!targets.some((target) => imports.has(target))) imports.delete(path);
  }
  expect([...imports.keys()]).toEqual([]);
});

describe('the imports of each file of the console follow its import rules', () => {
  for (const { path, text } of sources('console/**/*.{ts,tsx}')) {
    test(path, () => {
      const module = (path.split('/')[1] ?? '').replace(/(\.d)?\.tsx?$/, '');
      for (const { from } of importsOf(text)) {
        const [folder, first = ''] = join(dirname(path), from).split('/');
        const internal = folder === 'console' ? first.replace(/\.tsx?$/, '') : `${folder}/${first}`;
        const target = from.startsWith('.') ? internal : from;
        expect([from, target === module || CONSOLE_IMPORT_RULES[module]?.includes(target)]).toEqual([
          from,
          true,
        ]);
      }
    });
  }
});

/** Code that only one file may contain. */
const OWNED: readonly [RegExp, string][] = [
  [/Date\.now\(|new Date\(\)|getRandomValues/, 'src/ops/process/clock.ts'],
  [/Bun\.serve\b/, 'src/http/server/server.ts'],
  [/process\.env\b/, 'src/main.ts'],
];

const BANNED: readonly [RegExp, string][] = [
  [/\bas any\b|: any\b/, 'a real type'],
  [/\/\/ ?(TODO|FIXME|XXX)/, 'an issue'],
  [/\bexport default\b/, 'a named export'],
  [/@ts-ignore|@ts-expect-error|biome-ignore/, 'the type or the rule itself'],
];

describe('file sizes, file names and banned constructs', () => {
  const all = [
    ...src,
    ...sources('test/**/*.ts'),
    ...sources('bench/**/*.ts'),
    ...sources('scripts/**/*.ts'),
    ...sources('examples/**/*.ts'),
    ...sources('console/**/*.{ts,tsx,css}'),
    ...sources('site/**/*.{ts,tsx,css}'),
  ];

  for (const { path, text } of all) {
    test(path, () => {
      expect(text.split('\n').length).toBeLessThanOrEqual(400);
      if (path === 'test/repository/tidy.unit.test.ts') return;
      const code = text.replace(/^\s*\/?\*.*$/gm, '');
      for (const [pattern, better] of BANNED)
        expect([better, pattern.exec(code)?.[0]]).toEqual([better, undefined]);
      expect(path).not.toMatch(/(^|\/)(utils?|helpers?|common|shared|tools?|misc)(\/|\.)/);
    });
  }

  for (const [pattern, owner] of OWNED) {
    test(`only ${owner} contains ${pattern.source}`, () => {
      const code = src.filter(({ text }) => pattern.test(text.replace(/^\s*(\/\/|\/?\*).*$/gm, '')));
      expect(code.map(({ path }) => path)).toEqual([owner]);
    });
  }

  test('only sql/ and folders named store/ contain SQL', () => {
    const sql = /\b(select [\w*, ]+ from|insert into|delete from|update \w+ set)\b/;
    const found = src.filter(({ text }) => sql.test(text)).map(({ path }) => path);
    expect(found.length).toBeGreaterThan(0);
    expect(found.filter((path) => !RUNS_STATEMENTS.test(path))).toEqual([]);
  });

  test('src has no loose file but main.ts', () => {
    expect(src.map(({ path }) => path).filter((path) => path.split('/').length === 2)).toEqual([
      'src/main.ts',
    ]);
  });

  test('every file of src is imported', () => {
    const imported = new Set(
      src.flatMap(({ path, text }) => importsOf(text).map(({ from }) => join(dirname(path), from))),
    );
    const orphans = src
      .map(({ path }) => path)
      .filter((path) => !imported.has(path) && path !== 'src/main.ts');
    expect(orphans).toEqual([]);
  });
});
