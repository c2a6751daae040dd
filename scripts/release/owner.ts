import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './build.ts';

/** What only the owner of the project can fill in (owner.json), and what package.json says about this release. */

/** Each value is empty until the owner fills it in; a release needs all of them. */
export interface Owner {
  /** The URL of the public repository. */
  readonly repository: string;
  /** The name of the package in the npm registry. */
  readonly registryName: string;
  /** A mailto: or https: address for reports of vulnerabilities. */
  readonly contact: string;
  /** The URL of the published documentation. */
  readonly site: string;
}

export interface Manifest {
  readonly name: string;
  readonly version: string;
}

const readJson = (name: string) => JSON.parse(readFileSync(join(ROOT, name), 'utf8'));

export const readManifest = (): Manifest => readJson('package.json');
export const readOwner = (): Owner => readJson('owner.json');

const FORMS: readonly (readonly [keyof Owner, RegExp, string])[] = [
  ['repository', /^https:\/\/(?!HOST\/)[^/\s]+\/\S+[^/\s]$/, 'a URL such as https://HOST/OWNER/authrealm'],
  ['registryName', /^(@[a-z\d-]+\/)?[a-z\d-]+$/, 'a name such as authrealm or @OWNER/authrealm'],
  ['contact', /^(mailto:|https:\/\/)\S+$/, 'an address such as mailto:security@HOST'],
  ['site', /^https:\/\/(?!HOST\b)\S+$/, 'a URL such as https://HOST/authrealm'],
];

/** A sentence for each value that is empty or invalid. */
export function checkOwner(owner: Owner): readonly string[] {
  return FORMS.filter(([name, form]) => !form.test(owner[name] ?? '')).map(
    ([name, , expected]) => `owner.json has no ${name}: write ${expected}`,
  );
}

/** The URL of a page of the repository; undefined while the owner has not set it. */
export function repositoryPage(path: string): string | undefined {
  const { repository } = readOwner();
  return repository === '' ? undefined : repository.replace(/\.git$/, '') + path;
}

/** The URL below which the files of this release are in the repository; undefined as well. */
export const releasedFiles = () => repositoryPage(`/blob/v${readManifest().version}`);
