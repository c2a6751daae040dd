import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, run } from './build.ts';
import type { Owner } from './owner.ts';

/**
 * The provenance of a release: which files were built from which commit with which programs, as an in-toto Statement v1 with the
 * predicate SLSA Provenance v1. It is not signed, and has no times: the same commit and the same programs give the same bytes.
 */

export interface Subject {
  readonly name: string;
  readonly sha256: string;
}

/** Every program that has a part in an artefact; one that is not installed built none. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  bun: [process.execPath, '--version'],
  node: ['node', '--version'],
  npm: ['npm', '--version'],
  git: ['git', '--version'],
  dpkg: ['dpkg-deb', '--version'],
  apt: ['apt-get', '--version'],
  tar: ['tar', '--version'],
};

/** The packages that build a release: the documentation has its own. */
const LOCK_FILES: readonly string[] = ['package-lock.json', 'site/package-lock.json'];

async function versions(): Promise<Readonly<Record<string, string>>> {
  const found: Record<string, string> = {};
  for (const [name, command] of Object.entries(PROGRAMS)) {
    if (Bun.which(command[0] ?? '') === null) continue;
    found[name] = /\d+(\.\d+)+\S*/.exec(await run(command))?.[0] ?? 'unknown';
  }
  return found;
}

export async function makeProvenance(
  tag: string,
  { repository }: Owner,
  subjects: readonly Subject[],
): Promise<object> {
  const source = `git+${repository}@refs/tags/${tag}`;
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: subjects.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: `${repository}/blob/${tag}/docs/releasing.md#build`,
        externalParameters: { source, command: 'npm run release' },
        resolvedDependencies: [
          { uri: source, digest: { gitCommit: (await run(['git', 'rev-parse', 'HEAD'])).trim() } },
          ...LOCK_FILES.map((name) => ({
            name,
            uri: `${repository}/blob/${tag}/${name}`,
            digest: { sha256: sha256Of(readFileSync(join(ROOT, name))) },
          })),
        ],
      },
      runDetails: {
        builder: {
          id: `${repository}/blob/${tag}/scripts/release/release.ts`,
          version: await versions(),
        },
      },
    },
  };
}

export function sha256Of(bytes: Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(bytes).digest('hex');
}
