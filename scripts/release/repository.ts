import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './build.ts';

/** What package.json says about this release: its version, and its public repository with the pages that follow from it. */

export interface Manifest {
  readonly name: string;
  readonly version: string;
  /** The one setting of the owner; the two below follow from it. */
  readonly repository: string;
  readonly bugs?: string;
  readonly homepage?: string;
}

export function readManifest(): Manifest {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
}

/** Pages of a repository whose URL is the setting `repository`; undefined while the owner has not set it. */
export interface RepositoryLinks {
  readonly repository: string;
  readonly bugs: string;
  readonly homepage: string;
}

export function repositoryLinks({ repository }: Manifest): RepositoryLinks | undefined {
  if (!/^https:\/\/(?!HOST\/)[^/\s]+\/\S+[^/\s]$/.test(repository)) return undefined;
  const url = repository.replace(/\.git$/, '');
  return { repository: url, bugs: `${url}/issues`, homepage: `${url}#readme` };
}
