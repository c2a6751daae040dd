import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { createProgram } from '../src/cli/cli.ts';
import { SETTINGS } from '../src/config/parse.ts';
import type { Setting } from '../src/config/setting.ts';
import { FAULTS, GRANT_FAULTS } from '../src/domain/fault.ts';
import { LIMITS } from '../src/domain/limits.ts';
import { SCOPE_WORDS } from '../src/domain/principal.ts';
import { openApiDocument } from '../src/http/openapi/document.ts';
import { METRICS } from '../src/metrics/declarations.ts';
import { LOG_LEVELS } from '../src/platform/log.ts';
import { ROOT } from './release/build.ts';

/**
 * Every name by which operators, scripts and clients know this release. Each release stores its names with its fixtures
 * (scripts/write_release_fixture.ts); a later release has them all, or UPGRADING.md names those it lacks.
 */
export async function publicNames(): Promise<Readonly<Record<string, readonly string[]>>> {
  const program = await createProgram([], {}, () => undefined);
  const commands = program.commands.flatMap(commandsOf);
  const document = openApiDocument('https://idp.example', '0') as OpenApi;
  const names = {
    commands: commands.map(nameOf),
    options: commands.flatMap((command) => command.options.map(({ long }) => `${nameOf(command)} ${long}`)),
    settings: [
      ...Object.values<Setting<unknown>>(SETTINGS).map(({ env }) => env),
      ...commands.flatMap((command) => command.options.flatMap(({ envVar }) => envVar ?? [])),
      ...sourcesOf('src/cli').flatMap((path) => matchesIn(path, /'(AUTHREALM_\w+)'/g)),
    ],
    limits: Object.keys(LIMITS),
    faults: [...Object.keys(FAULTS), ...Object.keys(GRANT_FAULTS)],
    metrics: Object.values(METRICS).map(({ name }) => name),
    logEvents: Object.keys(LOG_LEVELS),
    logMembers: matchesIn('src/platform/log.ts', /readonly (\w+)\??:/g),
    causes: sourcesOf('src').flatMap((path) => matchesIn(path, /'((?!AUTHREALM_)[A-Z]+(?:_[A-Z]+)+)'/g)),
    scopes: SCOPE_WORDS,
    operations: Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    ),
    components: Object.values(document.components).flatMap((group) => Object.keys(group).flatMap(partsOf)),
    members: membersOf(document),
    client: sourcesOf('src/client').flatMap((path) =>
      matchesIn(
        path,
        /^(?:export (?:type|interface|class|function|const) | +readonly | {2}(?=\w+\())(\w+)/gm,
      ),
    ),
  };
  return Object.fromEntries(
    Object.entries(names).map(([kind, each]) => [kind, [...new Set<string>(each)].sort()]),
  );
}

interface OpenApi {
  readonly paths: Readonly<Record<string, object>>;
  readonly components: Readonly<Record<string, object>>;
}

function commandsOf(command: Command): readonly Command[] {
  return command.commands.length > 0 ? command.commands.flatMap(commandsOf) : [command];
}

function nameOf(command: Command): string {
  return command.parent?.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name();
}

/** A response component that several faults share has their codes as its name. */
function partsOf(name: string): readonly string[] {
  return name.split('.');
}

function sourcesOf(folder: string): readonly string[] {
  return [...new Bun.Glob(`${folder}/**/*.ts`).scanSync(ROOT)];
}

function matchesIn(path: string, pattern: RegExp): readonly string[] {
  return [...readFileSync(join(ROOT, path), 'utf8').matchAll(pattern)].map(([, name = '']) => name);
}

/** The members of all schemas, by name. */
function membersOf(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { properties } = value as { readonly properties?: object };
  const own = typeof properties === 'object' ? Object.keys(properties) : [];
  return [...own, ...Object.values(value).flatMap(membersOf)];
}
