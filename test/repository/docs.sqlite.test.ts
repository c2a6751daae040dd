import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { benchmarkPages } from '../../bench/pages.ts';
import { NOT_ON_THE_SITE } from '../../site/contents.ts';
import { readChapters } from '../../site/pages.ts';
import { openApiDocument } from '../../src/app/api/document.ts';
import { FAULTS, GRANT_FAULTS } from '../../src/model/fault.ts';
import { SCOPE_WORDS } from '../../src/model/principal.ts';
import { RESOURCES } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { sqliteMigrations } from '../../src/ops/store/sqlite/open.ts';
import { openLineParser } from '../../src/ops/transfer/import_line.ts';
import { IMPORT_RULES } from '../support/import_rules.ts';
import type { JsonObject } from '../support/json_schema.ts';
import { ofRecord } from '../support/log_rows.ts';
import { operationsOf } from '../support/openapi_client.ts';
import { createFixture, databaseFile, oidcPath, startService } from '../support/service.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const PAGES = [...new Bun.Glob('**/*.md').scanSync(ROOT)]
  .filter((path) => !path.includes('node_modules'))
  .sort();
const manifest = JSON.parse(read('package.json'));

/** The text under a heading, up to the next one of its level or above. */
function section(page: string, heading: string): string {
  const level = heading.split(' ')[0] ?? '';
  const [, after] = page.split(`\n${heading}\n`);
  if (after === undefined) throw new Error(`no heading ${heading}`);
  return after.split(new RegExp(`\n#{1,${level.length}} `))[0] ?? '';
}

/** The rows of the tables in a text, without the heading rows; code marks and escapes taken off. */
function rows(text: string): readonly (readonly string[])[] {
  const lines = text.split('\n').filter((line) => line.startsWith('|'));
  return lines
    .filter((line, index) => !/^\|[-|]+\|$/.test(line) && !/^\|[-|]+\|$/.test(lines[index + 1] ?? ''))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll('\\|', '|').replaceAll('`', '')),
    );
}

const firsts = (text: string): string[] => rows(text).map(([first]) => first ?? '');

/** The names in code marks before the colon of each item of a list. */
function namedItems(text: string): string[] {
  return [...text.matchAll(/^- ((?:`[^`]+`[,\s]*)+):/gm)].flatMap(([, names = '']) =>
    [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''),
  );
}

describe('faults', () => {
  const codes = [...Object.keys(FAULTS), ...Object.keys(GRANT_FAULTS)].sort();

  test('docs/reference/faults.md has a section for every code of an error, and no other', () => {
    const sections = [...read('docs/reference/faults.md').matchAll(/^### (.+)$/gm)];
    expect(sections.map(([, code]) => code).sort()).toEqual(codes);
  });
});

test('docs/guides/schema.md lists every table of the database', () => {
  const db = new Database(':memory:');
  for (const { sql } of sqliteMigrations()) db.run(sql);
  const tables = db.query<{ name: string }, []>(`select name from sqlite_schema where type = 'table'`).all();
  const items = section(read('docs/guides/schema.md'), '## The tables').match(/^- .+?:/gm) ?? [];
  const listed = items.flatMap((item) => [...item.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  // The table of applied migrations is created before the first migration.
  expect(listed.sort()).toEqual([...tables.map(({ name }) => name), 'migration'].sort());
});

test('docs/architecture.md has a row for every module of src, and no other', () => {
  const modules = readdirSync(join(ROOT, 'src')).filter((name) => name !== 'main.ts');
  const listed = firsts(section(read('docs/architecture.md'), '## Modules'));
  expect(listed.map((name) => name.replace(/^src\/|\/$/g, '')).sort()).toEqual(modules.sort());
});

test('docs/architecture.md lists for each module what it may import', () => {
  const listed = rows(section(read('docs/architecture.md'), '## Modules')).map(
    ([module, , imports]) => [module?.replace(/^src\/|\/$|\.ts$/g, ''), imports] as const,
  );
  const { main: _, ...rules } = IMPORT_RULES;
  const expected = Object.entries(rules).map(
    ([module, modules]) => [module, modules.join(', ') || 'no other module'] as const,
  );
  expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(expected));
});

test('docs/decisions/README.md lists every decision by its title', () => {
  const pages = PAGES.filter((path) => /^docs\/decisions\/\d/.test(path));
  const titled = pages.map((path) => {
    const [, title] = /^# (.+)/.exec(read(path)) ?? [];
    return `- [${title}](${path.split('/').at(-1)})`;
  });
  const listed = read('docs/decisions/README.md').match(/^- \[.+?\]\(.+?\)/gm);
  expect([...(listed ?? [])]).toEqual(titled);
});

describe('the benchmark', () => {
  test.each(Object.entries(benchmarkPages()))('%s shows the figures of the last runs', (path, text) => {
    expect(read(path)).toBe(text);
  });

  test('the README shows at most ten rows of figures', () => {
    const figures = rows(section(read('README.md'), '## How fast'));
    expect(figures.length).toBeGreaterThan(0);
    expect(figures.length).toBeLessThanOrEqual(10);
  });
});

describe('links', () => {
  const slug = (heading: string): string =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-');
  const anchors = (path: string): string[] =>
    [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => slug(heading ?? ''));

  test.each(PAGES)('%s: the target of every relative link exists', (page) => {
    const links = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link ?? '');
    for (const link of links.filter((each) => !/^https?:/.test(each))) {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : join(dirname(page), path);
      expect([link, existsSync(join(ROOT, target))]).toEqual([link, true]);
      if (anchor !== undefined) expect(anchors(target)).toContain(anchor);
    }
  });

  const sources = [...new Bun.Glob('{src,console,test,scripts,bench}/**/*.{ts,tsx}').scanSync(ROOT)]
    .filter((path) => !path.includes('node_modules'))
    .concat('deploy/prometheus/alerts.yaml')
    .sort();

  test.each(sources)('%s: every page and heading that it cites exists', (source) => {
    for (const [, path = '', anchor] of read(source).matchAll(/\b(docs\/[\w/-]+\.md)(?:#([\w-]+))?/g)) {
      expect([path, existsSync(join(ROOT, path))]).toEqual([path, true]);
      if (anchor !== undefined) expect(anchors(path)).toContain(anchor);
    }
    for (const [, number = ''] of read(source).matchAll(/\bdecision (\d{4})\b/g))
      expect(PAGES.filter((page) => page.startsWith(`docs/decisions/${number}-`))).toHaveLength(1);
  });

  // Releases describe the scripts of their time.
  const currentPages = PAGES.filter((page) => page !== 'CHANGELOG.md');

  test.each(currentPages)('%s: every npm script that it names exists', (page) => {
    for (const [, name = ''] of read(page).matchAll(/\bnpm run (?:--silent )?([\w:-]+)/g))
      expect(manifest.scripts).toHaveProperty([name]);
  });

  test.each(PAGES)('%s: every test that it names exists', (page) => {
    for (const [path] of read(page).matchAll(/\btest\/[\w/.]+\.ts\b/g)) {
      expect([path, existsSync(join(ROOT, path))]).toEqual([path, true]);
    }
  });
});

test('no message of the program cites a page that the npm package lacks', () => {
  // The transpiler drops the comments, which cite pages of the repository.
  const withoutComments = new Bun.Transpiler({ loader: 'ts' });
  const cited = [...new Bun.Glob('src/**/*.ts').scanSync(ROOT)]
    .flatMap(
      (path) => withoutComments.transformSync(read(path)).match(/\b(docs\/[\w/-]+|[A-Z]+)\.md\b/g) ?? [],
    )
    .sort();
  expect(cited).not.toEqual([]);
  expect(cited.filter((page) => !manifest.files.includes(page))).toEqual([]);
});

test('no page, message or file of deploy/ calls the program by npx in a way that may fetch a package of a stranger', () => {
  const files = [
    ...PAGES,
    ...new Bun.Glob('{src,console,deploy}/**/*.{ts,tsx,sh,yaml,service}').scanSync(ROOT),
  ];
  const calls = files.flatMap((path) => read(path).match(/.*\bnpx\b.*\bauthrealm\b.*/g) ?? []);
  expect(calls).not.toEqual([]);
  expect(calls.filter((call) => !/\bnpx --no -- authrealm\b/.test(call))).toEqual([]);
});

test('every page of docs/ but the decisions has one place in site/contents.ts', () => {
  const listed = readChapters().flatMap(({ pages }) => pages.map(({ source }) => source));
  expect(listed.filter((source) => source.startsWith('docs/')).sort()).toEqual(
    PAGES.filter((page) => page.startsWith('docs/') && !page.startsWith(NOT_ON_THE_SITE)),
  );
});

test('CONTRIBUTING.md has a line for every dependency, and no other', () => {
  const expected: Record<string, object> = {
    '### At run time': manifest.dependencies,
    '### For development': manifest.devDependencies,
  };
  for (const folder of ['site', 'test/clients/sdks/npm', 'test/generators'])
    expected[`### In \`${folder}/\``] = JSON.parse(read(`${folder}/package.json`)).dependencies;
  for (const [heading, packages] of Object.entries(expected)) {
    const listed = namedItems(section(read('CONTRIBUTING.md'), heading));
    expect([heading, ...listed.sort()]).toEqual([heading, ...Object.keys(packages).sort()]);
  }
});

describe('the README', () => {
  const readme = read('README.md');

  test('the first commands of the README are scripts of the package', () => {
    const [, commands = ''] = /^```sh\n(.*?)^```/ms.exec(readme) ?? [];
    const lines = commands.trim().split('\n');
    expect(lines.map((line) => line.split('#')[0]?.trim())).toEqual([
      'npm ci && npm run demo -- --once',
      'npm ci && npm test',
    ]);
    expect(manifest.scripts).toMatchObject({ demo: expect.any(String), test: expect.any(String) });
  });

  test('README, five minutes and the first task lead to a program of the reader in at most 1,600 words', () => {
    const pages = ['README.md', 'docs/guides/five-minutes.md', 'docs/tasks/look-up-a-link.md'];
    // Programs and answers are copied and compared, not read.
    const text = pages.map((path) => read(path).replaceAll(/^```(?:ts|json)\n.*?^```$/gms, '')).join('\n');
    expect(text.split(/\s+/).length).toBeLessThanOrEqual(1_600);
  });
});

test('docs/guides/clients-and-tokens.md names every scope word', () => {
  const scopes = section(read('docs/guides/clients-and-tokens.md'), '## Scopes');
  for (const word of SCOPE_WORDS) expect(scopes).toContain(`\`${word}\``);
});

describe('docs/seed-gaps.md', () => {
  const page = read('docs/seed-gaps.md');
  const quoted = [...section(page, '## The lines').matchAll(/^\d+\. (.+)$/gm)].map(([, line]) => line ?? '');
  const answers = rows(section(page, '## Our decisions'));

  test('docs/seed-gaps.md has an answer for every line, and a line and a test for every answer', () => {
    const lines = quoted.map((_, index) => String(index + 1));
    expect([...new Set(answers.map(([line]) => line))]).toEqual(lines);
    for (const [, gap, answer, coveredBy] of answers) {
      expect([gap, answer !== '', /test\/\S+\.test\.ts/.test(coveredBy ?? '')]).toEqual([gap, true, true]);
    }
  });

  test('docs/seed-gaps.md quotes the eight open points of the seed', () => {
    expect(quoted).toHaveLength(8);
    for (const line of quoted) expect(line).toContain('not shown');
    // The seed is not part of the repository: without it, the quotes are compared with themselves.
    const path = new URL('../../../shared/seed.md', import.meta.url);
    const seed = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : quoted;
    const open = seed.filter((line) => line.includes('not shown'));
    expect(open.map((line, index) => line.slice(-(quoted[index]?.length ?? 0)))).toEqual(quoted);
  });
});

describe('docs/extensions.md', () => {
  const page = read('docs/extensions.md');
  const document = openApiDocument('https://idp.example', '0') as JsonObject;
  const operations = operationsOf(document);
  const isExtension = (each: object): boolean => 'x-authrealm-extension' in each;
  const unique = (names: readonly string[]) => [...new Set(names)].sort();

  const listed = (heading: string): string[] => namedItems(section(page, heading));

  test('docs/extensions.md lists every operation that OpenAPI marks as an extension, and no other', () => {
    const paths = Object.entries(document.paths as Record<string, Record<string, object>>);
    const all = paths.flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, each]) => ({ name: `${method.toUpperCase()} ${path}`, each })),
    );
    const marked = all.filter(({ each }) => isExtension(each)).map(({ name }) => name);
    const described = listed('## Operations').map((each) => {
      const pattern = RegExp.escape(each.replace('{realm}', '/v2/authentication-realms/{realm_id}'));
      const matching = new RegExp(`^${pattern.replaceAll('\\*', '.*')}$`);
      return all.map(({ name }) => name).filter((name) => matching.test(name));
    });
    expect(described.filter((names) => names.length === 0)).toEqual([]);
    expect(unique(described.flat())).toEqual(marked.sort());
  });

  test('docs/extensions.md lists every parameter that OpenAPI marks as an extension, and no other', () => {
    const marked = operations.flatMap(({ parameters }) =>
      parameters.filter(isExtension).map(({ name }) => name),
    );
    expect(listed('## Parameters and request headers').sort()).toEqual(unique(marked));
  });

  const answers = operations.flatMap((operation) => Object.entries(operation.responses));

  test('docs/extensions.md lists every header that OpenAPI marks as an extension, and no other', () => {
    const headers = answers.flatMap(([, answer]) => Object.entries(answer.headers ?? {}));
    const marked = headers.filter(([, header]) => isExtension(header)).map(([name]) => name);
    // Allow belongs to 405, the answer to an unknown operation.
    expect(listed('## Response headers').sort()).toEqual(unique([...marked, 'Allow']));
  });

  test('docs/extensions.md lists every status that OpenAPI marks as an extension, and no other', () => {
    const marked = answers.filter(([, answer]) => isExtension(answer)).map(([status]) => status);
    expect(listed('## Statuses').sort()).toEqual(unique(marked));
  });

  test('the OpenAPI document deprecates nothing', () => {
    expect(JSON.stringify(document)).not.toContain('"deprecated"');
  });
});

test('import can read the example lines of docs/guides/import-and-export.md', () => {
  const page = read('docs/guides/import-and-export.md');
  const lines = /```json\n(.*?)\n```/s.exec(section(page, '## Import'))?.[1]?.split('\n') ?? [];
  const parseLine = openLineParser({
    clock: systemClock,
    isUpsert: false,
    isStrict: false,
    installation: 'here',
    seal: () => new Uint8Array(),
    open: () => '',
    signerKeyIds: new Set(),
  });
  const types = lines.map((line) => parseLine(Buffer.from(line)).load.write.resource.type);
  expect(types).toEqual(RESOURCES.map(({ type }) => type));
});

test('a record that another process deletes is 404 at the next request', async () => {
  const service = await startService();
  const fixture = await createFixture(service.db);
  const token = await service.token('oidc-profile-infos:read');
  expect((await service.get(oidcPath(fixture), token)).status).toBe(200);
  const other = new Database(databaseFile(service));
  other.run(`delete from oidc_profile_info where ${ofRecord('sqlite')}`, [fixture.oidcLink]);
  other.close();
  expect((await service.get(oidcPath(fixture), token)).status).toBe(404);
});
