import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { YAML } from 'bun';
import { readSettings, SETTINGS } from '../../src/app/config/parse.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { runAuthrealm } from '../support/processes.ts';

/** The files of deploy/: the files they name exist, and the program accepts their settings. */

/** The longest time that the service takes to stop. */
const STOP_MS_MAX = LIMITS.drainDelaySecondsMax * 1_000 + LIMITS.drainMsMax;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const FILES = readdirSync(join(ROOT, 'deploy'), { withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map(({ name }) => `deploy/${name}`);
const manifest = JSON.parse(read('package.json'));

type Variables = Readonly<Record<string, string>>;

interface ComposeService {
  readonly image: string;
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

/** The variables of the program among these. */
function programVariables(variables: Variables): Variables {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => name.startsWith('AUTHREALM_')));
}

/** The `key=value` lines of a unit, in order. */
function directives(unit: string): readonly (readonly [key: string, value: string])[] {
  const lines = read(unit).split('\n');
  return lines.flatMap((line) => {
    const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    return key === undefined ? [] : [[key, value ?? ''] as const];
  });
}

const valuesOf = (unit: string, key: string): readonly string[] =>
  directives(unit).flatMap(([name, value]) => (name === key ? [value] : []));

/** The variables that deploy/README.md tells operators to set. */
const operatorVariables: Variables = Object.fromEntries(
  [...read('deploy/README.md').matchAll(/^(AUTHREALM_\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [
    name,
    value,
  ]),
);

describe.each(FILES)('%s', (path) => {
  test('names only variables that the program reads', () => {
    const known: readonly string[] = Object.values(SETTINGS).map(({ env }) => env);
    const named = [...read(path).matchAll(/\bAUTHREALM_[A-Z_]+\b/g)].map(([name]) => name);
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
  });

  test('names only existing commands', async () => {
    const calls = [
      ...read(path).matchAll(/(?:bin\/|npx --no -- |--rm | {2,})authrealm ([a-z]+)(?: ([a-z]+))?/g),
    ];
    for (const [, command = '', word = ''] of calls) {
      const { stdout, code } = await runAuthrealm([command, '--help']);
      expect([command, code]).toEqual([command, 0]);
      if (stdout.includes('\nCommands:')) expect(stdout).toContain(`\n  ${word} `);
    }
  });
});

describe('images', () => {
  test.each(services.map(([, { image }]) => image))('the image %s has an exact version', (image) => {
    expect(image).toMatch(/:\d+\.\d+(\.\d+)?(-[a-z]+)*$/);
  });

  test('the image of the program has the version of this release', () => {
    const program = services.filter(
      ([, { environment = {} }]) => Object.keys(programVariables(environment)).length > 0,
    );
    expect(program.length).toBeGreaterThan(0);
    for (const [, { image }] of program) expect(image).toBe(`authrealm:${manifest.version}`);
  });
});

test.each(FILES)('%s names no other release than this one', (path) => {
  const named = [...read(path).matchAll(/\bauthrealm[:_-](\d+\.\d+\.\d+)/g)].map(([, version]) => version);
  expect(named.filter((version) => version !== manifest.version)).toEqual([]);
});

describe('compose.yaml', () => {
  test('compose.yaml declares the secrets and services that its services use, and no other', () => {
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

  test.each(services)(
    'the service %s in compose.yaml receives every file that it reads',
    (_name, service) => {
      const variables = Object.entries(service.environment ?? {});
      const files = variables.filter(([name]) => name.endsWith('_FILE')).map(([, path]) => path);
      const secretFiles = (service.secrets ?? []).map((name) => `/run/secrets/${name}`);
      const volumes = (service.volumes ?? []).map((volume) => volume.split(':'));
      const folders = volumes.map(([, folder = '']) => folder);
      const isProvided = (path: string) => secretFiles.includes(path) || folders.includes(dirname(path));
      expect(files.filter((path) => !isProvided(path))).toEqual([]);
      const mounted = volumes.map(([source = '']) => source);
      expect(
        mounted.filter((path) => path.startsWith('.') && !existsSync(join(ROOT, 'deploy', path))),
      ).toEqual([]);
    },
  );

  test('roles.sql reads only secrets of its container, and creates the roles of the database URLs', () => {
    const sql = read('deploy/roles.sql');
    const secrets = [...sql.matchAll(/\/run\/secrets\/(\w+)/g)].map(([, name]) => name ?? '');
    expect(secrets.filter((name) => !compose.services.postgres?.secrets?.includes(name))).toEqual([]);
    const roles = [...sql.matchAll(/^create role (\w+)/gm)].map(([, role]) => role);
    const named = services.flatMap(([, { environment = {} }]) =>
      [...JSON.stringify(environment).matchAll(/postgres:\/\/(\w+)@/g)].map(([, role]) => role),
    );
    expect([...new Set(named)].sort()).toEqual(roles.sort());
  });

  test.each(
    services.filter(([, { environment = {} }]) => Object.keys(programVariables(environment)).length > 0),
  )(
    'the program accepts the settings of the service %s in compose.yaml',
    (_name, { command, environment = {}, healthcheck }) => {
      const serves = command === undefined;
      if (!serves) expect(command).toEqual(['migrate']);
      const settings = readSettings({}, programVariables(environment), { listens: serves });
      expect(settings.migrate).toBe(serves ? 'check' : 'auto');
      expect(healthcheck !== undefined).toBe(serves);
    },
  );

  test('compose.yaml stops the service only after its drain time', () => {
    const seconds = Number.parseInt(compose.services.authrealm?.stop_grace_period ?? '', 10);
    expect(seconds * 1_000).toBeGreaterThan(STOP_MS_MAX);
  });
});

describe('kubernetes.yaml', () => {
  interface Deployment {
    readonly kind: string;
    readonly spec: {
      readonly replicas: number;
      readonly strategy: { readonly type: string };
      readonly template: { readonly spec: Pod };
    };
  }
  interface Pod {
    readonly terminationGracePeriodSeconds: number;
    readonly containers: readonly Container[];
    readonly volumes: readonly { readonly name: string }[];
  }
  interface Container {
    readonly image: string;
    readonly args: readonly string[];
    readonly env: readonly { readonly name: string; readonly value: string }[];
    readonly readinessProbe: Probe;
    readonly livenessProbe: Probe;
    readonly startupProbe: Probe;
    readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  }
  interface Probe {
    readonly httpGet: { readonly path: string; readonly port: string };
  }

  const documents = YAML.parse(read('deploy/kubernetes.yaml')) as readonly Deployment[];
  const { spec } = documents.find(({ kind }) => kind === 'Deployment') as Deployment;
  const pod = spec.template.spec;
  const container = pod.containers[0] as Container;
  const variables = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
  const [command, ...options] = container.args;
  const flags = Object.fromEntries(
    options.map((option) => {
      const [, flag = '', value = ''] = /^--([a-z-]+)=(.+)$/.exec(option) ?? [];
      const [name] = Object.entries(SETTINGS).find(([, setting]) => setting.flag === flag) ?? [option];
      return [name, value];
    }),
  );

  test('the program accepts the arguments and variables of kubernetes.yaml', () => {
    expect(command).toBe('serve');
    expect(Object.keys(flags).filter((name) => !(name in SETTINGS))).toEqual([]);
    const settings = readSettings(flags, variables, { listens: true });
    expect(settings.drainDelay).toBeGreaterThan(0);
  });

  test('kubernetes.yaml runs one pod of this release on one volume, and stops it only after its drain time', () => {
    expect(container.image).toBe(`authrealm:${manifest.version}`);
    expect([spec.replicas, spec.strategy.type]).toEqual([1, 'Recreate']);
    expect(documents.filter(({ kind }) => kind === 'PersistentVolumeClaim')).toHaveLength(1);
    expect(pod.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(STOP_MS_MAX);
  });

  test('the volumes of kubernetes.yaml hold the database of the image and the master key', () => {
    const folders = container.volumeMounts.map(({ mountPath }) => mountPath);
    expect(folders).toEqual(['/data', dirname(variables.AUTHREALM_MASTER_KEY_FILE as string)]);
    expect(container.volumeMounts.map(({ name }) => name)).toEqual(pod.volumes.map(({ name }) => name));
    expect(read('scripts/release/image.ts')).toContain('AUTHREALM_DATABASE=sqlite:/data/');
  });

  test('the probes of kubernetes.yaml ask the paths of readiness and health', () => {
    const { readinessProbe, livenessProbe, startupProbe } = container;
    expect([readinessProbe, livenessProbe, startupProbe].map(({ httpGet }) => httpGet.path)).toEqual([
      '/readyz',
      '/healthz',
      '/healthz',
    ]);
  });
});

test('the program accepts the settings of docs/guides/production.md', () => {
  const [, block = ''] = /^```ini\n(.*?)^```/ms.exec(read('docs/guides/production.md')) ?? [];
  const variables = Object.fromEntries(
    [...block.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  );
  const settings = readSettings({}, variables, { listens: true });
  expect([settings.processes, settings.drainDelay]).toEqual([2, 10]);
});

test('systemd restarts the service after every end that systemctl did not ask for', () => {
  expect(valuesOf('deploy/authrealm.service', 'Restart')).toEqual(['always']);
  // The migration ends when it is done; the database may start much later.
  expect(valuesOf('deploy/authrealm-migrate.service', 'Restart')).toEqual(['on-failure']);
});

/** The files of each unit with a PostgreSQL database. */
const UNITS: Readonly<Record<string, readonly string[]>> = {
  'authrealm.service': ['deploy/authrealm.service', 'deploy/postgresql.conf'],
  'authrealm-migrate.service': ['deploy/authrealm-migrate.service'],
};

describe.each(Object.entries(UNITS))('%s', (name, files) => {
  const unit = `deploy/${name}`;
  const all = (key: string): readonly string[] => files.flatMap((file) => valuesOf(file, key));

  test('the program accepts the settings of the unit and of the operator', () => {
    const own = Object.fromEntries(
      all('Environment').map((line) => {
        const [variable = '', value = ''] = line.split('=');
        return [variable, value.replace('%d', '/run/credentials').replace('%S', '/var/lib')];
      }),
    );
    const isServing = name === 'authrealm.service';
    const { AUTHREALM_MIGRATE_DATABASE: owner = '', ...serving } = operatorVariables;
    const variables = isServing ? serving : { ...serving, AUTHREALM_MIGRATE_DATABASE: owner };
    const settings = readSettings({}, { ...own, ...variables }, { listens: isServing });
    expect(settings.database.engine).toBe('postgres');
    expect(settings.migrateDatabase !== undefined).toBe(!isServing);
  });

  test('the unit loads exactly the credentials that it uses', () => {
    const credentials = all('LoadCredential').map((value) => value.split(':')[0] ?? '');
    const used = files.flatMap((file) => [...read(file).matchAll(/=%d\/(\S+)$/gm)].map(([, word]) => word));
    expect(used.sort()).toEqual(credentials.toSorted());
  });

  test('the unit contains no secret', () => {
    const secrets = Object.values(SETTINGS).filter((row) => 'secret' in row);
    for (const { env } of secrets) expect(read(unit)).not.toMatch(new RegExp(`\\b${env}=`));
    expect(read(unit)).not.toMatch(/postgres:\/\/[^@\s]*:[^@\s]*@/);
  });

  test.each([
    // The database may start much later.
    ['StartLimitIntervalSec', '0'],
    ['User', 'authrealm'],
    ['NoNewPrivileges', 'yes'],
    ['ProtectSystem', 'strict'],
    ['CapabilityBoundingSet', ''],
    // The runtime compiles code while it runs: with this directive it does not start.
    ['MemoryDenyWriteExecute', 'no'],
  ])('the unit sets %s=%s', (key, value) => expect(valuesOf(unit, key)).toEqual([value]));
});

test('the program accepts the settings that the settings file of the Debian package suggests', () => {
  const suggested = [...read('deploy/authrealm.conf').matchAll(/^#(AUTHREALM_\w+)=(.*)$/gm)];
  const variables = Object.fromEntries(suggested.map(([, variable = '', value = '']) => [variable, value]));
  expect(readSettings({}, variables, { listens: true }).host).toBe('0.0.0.0');
});

test.each([
  ['bin/authrealm', /^ *export (BUN_JSC_\w+)="\$\{\1:-1\}"$/m],
  ['deploy/authrealm.service', /^Environment=(BUN_JSC_\w+)=1$/m],
  ['scripts/release/image.ts', /'(BUN_JSC_\w+)=1'/],
])('%s lets the heap grow to twice what a collection left', (path, pattern) => {
  expect(pattern.exec(read(path))?.[1]).toBe('BUN_JSC_heapGrowthMaxIncrease');
});

test('every unit raises the limit of descriptors', () => {
  const units = FILES.filter((path) => path.endsWith('.service'));
  expect(units.length).toBeGreaterThan(1);
  for (const unit of units) expect([unit, valuesOf(unit, 'LimitNOFILE')]).toEqual([unit, ['65536']]);
});

test('systemd kills the service only after its drain time', () => {
  const [seconds = ''] = valuesOf('deploy/authrealm.service', 'TimeoutStopSec');
  expect(Number(seconds) * 1_000).toBeGreaterThan(STOP_MS_MAX);
});
