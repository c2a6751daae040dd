import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runToEnd, Unavailable } from './peer.ts';

/** Where each peer comes from: the registry of its language, by that registry's ordinary client. */

const KEYCLOAK_VERSION = '26.7.3';

/** Installs a program once into its own folder; a failed installation leaves nothing. Returns the folder. */
async function installOnce(
  programs: string,
  name: string,
  needs: readonly string[],
  install: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = join(programs, name);
  if (existsSync(folder)) return folder;
  const missing = needs.filter((command) => !Bun.which(command));
  if (missing.length > 0) throw new Unavailable(`${name} needs ${missing.join(' and ')} to be installed.`);
  const partial = `${folder}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { recursive: true });
  try {
    await install(partial);
  } catch (error) {
    throw new Unavailable(`${name} could not be installed: ${(error as Error).message}`, { cause: error });
  }
  renameSync(partial, folder);
  return folder;
}

/** Builds the command of a Go module, with its SQLite driver. Returns the program. */
export async function installKratos(programs: string): Promise<string> {
  const folder = await installOnce(programs, 'kratos', ['go', 'cc'], async (into) => {
    cpSync(join(import.meta.dir, 'kratos'), into, { recursive: true });
    const flags = ['-mod=mod', '-tags', 'sqlite', '-ldflags', '-s -w', '-o', 'kratos'];
    await runToEnd(['go', 'build', ...flags, 'github.com/ory/kratos'], { cwd: into });
  });
  return join(folder, 'kratos');
}

/** The distribution from Maven Central, built for PostgreSQL. Returns its folder. */
export async function installKeycloak(programs: string): Promise<string> {
  const name = `keycloak-${KEYCLOAK_VERSION}`;
  const folder = await installOnce(programs, name, ['mvn', 'unzip', 'java'], async (into) => {
    const artifact = `org.keycloak:keycloak-quarkus-dist:${KEYCLOAK_VERSION}:zip`;
    await runToEnd([
      'mvn',
      '-q',
      '-B',
      'dependency:copy',
      `-Dartifact=${artifact}`,
      `-DoutputDirectory=${into}`,
    ]);
    await runToEnd(['unzip', '-q', join(into, `keycloak-quarkus-dist-${KEYCLOAK_VERSION}.zip`), '-d', into]);
    await runToEnd([join(into, name, 'bin/kc.sh'), 'build', '--db=postgres', '--cache=local']);
  });
  return join(folder, name);
}

/** The npm package, with the server of this folder. Returns the folder. */
export function installBetterAuth(programs: string): Promise<string> {
  return installOnce(programs, 'better-auth', ['npm'], async (into) => {
    cpSync(join(import.meta.dir, 'better-auth'), into, { recursive: true });
    await runToEnd(['npm', 'install', '--no-fund', '--no-audit'], { cwd: into });
  });
}
