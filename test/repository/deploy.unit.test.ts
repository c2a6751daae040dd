import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { YAML } from 'bun';
import { readSettings, SETTINGS } from '../../src/config/parse.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';

/** The files of deploy/: what they name is there, and the program accepts the settings that they give. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const FILES = readdirSync(join(ROOT, 'deploy'), { withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map(({ name }) => `deploy/${name}`);
const manifest = JSON.parse(read('package.json'));

type Variables = Readonly<Record<string, string>>;

interface ComposeService {
  readonly image: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly environment?: Variables;
  readonly secrets?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: object;
  readonly stop_grace_period?: string;
}

interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

const compose = YAML.parse(read('deploy/compose.yaml')) as Compose;
const services = Object.entries(compose.services);
const container = read('deploy/Containerfile');

/** The variables of the program among others. */
function ours(variables: Variables): Variables {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => name.startsWith('AUTHREALM_')));
}

/** The lines `key=value` of a unit, in their order. */
function directives(unit: string): readonly (readonly [key: string, value: string])[] {
  const lines = read(unit).split('\n');
  return lines.flatMap((line) => {
    const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    return key === undefined ? [] : [[key, value ?? ''] as const];
  });
}

const valuesOf = (unit: string, key: string): readonly string[] =>
  directives(unit).flatMap(([name, value]) => (name === key ? [value] : []));

/** What deploy/README.md has an operator write into the files of variables. */
const operatorVariables: Variables = Object.fromEntries(
  [...read('deploy/README.md').matchAll(/^(AUTHREALM_\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [
    name,
    value,
  ]),
);

describe.each(FILES)('%s', (path) => {
  test('names no variable that the program does not know', () => {
    const known: readonly string[] = Object.values(SETTINGS).map(({ env }) => env);
    const named = [...read(path).matchAll(/\bAUTHREALM_[A-Z_]+\b/g)].map(([name]) => name);
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
  });

  test('names only commands that there are', async () => {
    const calls = [...read(path).matchAll(/(?:bin\/|npx |--rm | {2,})authrealm ([a-z]+)(?: ([a-z]+))?/g)];
    for (const [, command = '', word = ''] of calls) {
      const { stdout, code } = await runCommand([AUTHREALM, command, '--help']);
      expect([command, code]).toEqual([command, 0]);
      if (stdout.includes('\nCommands:')) expect(stdout).toContain(`\n  ${word} `);
    }
  });
});

describe('images', () => {
  const named = [
    ...[...container.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image ?? ''),
    ...services.map(([, { image }]) => image),
  ];

  test.each(named)('%s is of one release', (image) => {
    expect(image).toMatch(/:\d+\.\d+(\.\d+)?(-[a-z]+)*$/);
  });

  test('that of the program is of this release, and is made by the one service that is built', () => {
    const [built, ...more] = services.filter(([, { build }]) => build !== undefined);
    expect(more).toEqual([]);
    const program = services.filter(([, { environment = {} }]) => Object.keys(ours(environment)).length > 0);
    for (const [, { image }] of program) expect(image).toBe(`authrealm:${manifest.version}`);
    const { context = '', dockerfile = '' } = built?.[1].build ?? {};
    expect(existsSync(join(ROOT, 'deploy', context, dockerfile))).toBe(true);
  });

  test('Node.js is one that the package takes', () => {
    const [, major] = /^FROM \S*node:(\d+)\./m.exec(container) ?? [];
    const [, least] = /^>=(\d+)$/.exec(manifest.engines.node) ?? [];
    expect(Number(major)).toBeGreaterThanOrEqual(Number(least));
  });

  test('what is copied is there, and is not held back', () => {
    const lines = [...container.matchAll(/^COPY (?!--from)(.+) \S+$/gm)];
    const copied = [...new Set(lines.flatMap(([, from = '']) => from.split(' ')))];
    expect(copied.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    const passed = read('deploy/Containerfile.dockerignore').match(/^!(.+)$/gm) ?? [];
    expect(passed.map((line) => line.slice(1)).sort()).toEqual(copied.sort());
  });

  test('nobody in it may change the program, and it begins with a command', async () => {
    expect(container).toMatch(/^USER (?!0\b)\d+:\d+$/m);
    const [, entry = ''] = /^ENTRYPOINT \["\/opt\/authrealm\/(.+)"\]$/m.exec(container) ?? [];
    expect(entry).toBe(manifest.bin.authrealm);
    expect(container).toContain('CMD ["serve"]');
  });
});

describe('compose.yaml', () => {
  test('what a service needs is declared, and what is declared is needed', () => {
    const needed = new Set(services.flatMap(([, { secrets = [] }]) => secrets));
    expect([...needed].sort()).toEqual(Object.keys(compose.secrets).sort());
    const readme = read('deploy/README.md');
    for (const [name, { file }] of Object.entries(compose.secrets)) {
      expect(file).toBe(`secrets/${name}`);
      expect(readme).toContain(name);
    }
    const others = services.flatMap(([, { depends_on: others = {} }]) => Object.keys(others));
    expect(others.filter((name) => !(name in compose.services))).toEqual([]);
  });

  test.each(services)('%s: what it reads from files is handed to it', (_name, service) => {
    const variables = Object.entries(service.environment ?? {});
    const files = variables.filter(([name]) => name.endsWith('_FILE')).map(([, path]) => path);
    const handed = (service.secrets ?? []).map((name) => `/run/secrets/${name}`);
    expect(files.filter((path) => !handed.includes(path))).toEqual([]);
    const mounted = (service.volumes ?? []).map((volume) => volume.split(':')[0] ?? '');
    expect(mounted.filter((path) => path.startsWith('.') && !existsSync(join(ROOT, 'deploy', path)))).toEqual(
      [],
    );
  });

  test('roles.sql reads secrets that its container has, and makes the roles that are named', () => {
    const sql = read('deploy/roles.sql');
    const secrets = [...sql.matchAll(/\/run\/secrets\/(\w+)/g)].map(([, name]) => name ?? '');
    expect(secrets.filter((name) => !compose.services.postgres?.secrets?.includes(name))).toEqual([]);
    const roles = [...sql.matchAll(/^create role (\w+)/gm)].map(([, role]) => role);
    const named = services.flatMap(([, { environment = {} }]) =>
      [...JSON.stringify(environment).matchAll(/postgres:\/\/(\w+)@/g)].map(([, role]) => role),
    );
    expect([...new Set(named)].sort()).toEqual(roles.sort());
  });

  test.each(services.filter(([, { environment = {} }]) => Object.keys(ours(environment)).length > 0))(
    '%s: the program accepts its settings',
    (_name, { command, environment = {}, healthcheck }) => {
      const serves = command === undefined;
      if (!serves) expect(command).toEqual(['migrate']);
      const settings = readSettings({}, ours(environment), { listens: serves });
      expect(settings.migrate).toBe(serves ? 'check' : 'auto');
      expect(healthcheck !== undefined).toBe(serves);
    },
  );

  test('the service is given the time to drain', () => {
    const seconds = Number.parseInt(compose.services.authrealm?.stop_grace_period ?? '', 10);
    expect(seconds * 1_000).toBeGreaterThan(LIMITS.drainMsMax + LIMITS.checkpointPostMsMax);
  });
});

describe.each(['authrealm', 'authrealm-migrate'])('%s.service', (name) => {
  const unit = `deploy/${name}.service`;
  const credentials = valuesOf(unit, 'LoadCredential').map((value) => value.split(':')[0] ?? '');

  test('the program accepts its settings, with those of the operator', () => {
    const own = Object.fromEntries(
      valuesOf(unit, 'Environment').map((line) => {
        const [variable = '', value = ''] = line.split('=');
        return [variable, value.replace('%d', '/run/credentials')];
      }),
    );
    const isServing = name === 'authrealm';
    const { AUTHREALM_MIGRATE_DATABASE: owner = '', ...serving } = operatorVariables;
    const given = isServing ? serving : { ...serving, AUTHREALM_MIGRATE_DATABASE: owner };
    const settings = readSettings({}, { ...given, ...own }, { listens: isServing });
    expect(settings.database.engine).toBe('postgres');
    expect(settings.migrateDatabase !== undefined).toBe(!isServing);
  });

  test('every credential is used, and every one that is used is there', () => {
    const used = [...read(unit).matchAll(/=%d\/(\S+)$/gm)].map(([, credential]) => credential);
    expect(used.sort()).toEqual(credentials.toSorted());
  });

  test('no secret stands in it', () => {
    const secrets = Object.values(SETTINGS).filter((row) => 'secret' in row);
    for (const { env } of secrets) expect(read(unit)).not.toMatch(new RegExp(`\\b${env}=`));
    expect(read(unit)).not.toMatch(/postgres:\/\/[^@\s]*:[^@\s]*@/);
  });

  test.each([
    // The database may come up much later.
    ['Restart', 'on-failure'],
    ['StartLimitIntervalSec', '0'],
    ['DynamicUser', 'yes'],
    ['NoNewPrivileges', 'yes'],
    ['ProtectSystem', 'strict'],
    ['CapabilityBoundingSet', ''],
    // The runtime compiles while it runs: with it, nothing starts.
    ['MemoryDenyWriteExecute', 'no'],
  ])('%s=%s', (key, value) => expect(valuesOf(unit, key)).toEqual([value]));
});

test('the service is given the time to drain before it is killed', () => {
  const [seconds = ''] = valuesOf('deploy/authrealm.service', 'TimeoutStopSec');
  expect(Number(seconds) * 1_000).toBeGreaterThan(LIMITS.drainMsMax + LIMITS.checkpointPostMsMax);
});
