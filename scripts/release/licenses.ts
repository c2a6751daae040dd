import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '../../src/model/version.ts';
import { ROOT, runBuild } from './build.ts';
import { releasedPackages } from './package_lock.ts';

/** Writes the licenses of the program and of every npm package in the files of a release. */

/** The same text in the Debian package and in the image. */
export const LICENSES_PATH = 'usr/share/doc/authrealm/copyright';

/** Packages of the runtime: npm has no license text of them. */
const RUNTIME = /^(bun$|@oven\/bun-)/;

/** License texts that packages lack and their repositories have, by the names of the packages. */
const FROM_REPOSITORIES = join(ROOT, 'scripts/release/licenses');

/** Throws if a package has no license text. */
export function licenseTexts(): string {
  const parts = releasedPackages()
    .filter(({ name }) => !RUNTIME.test(name))
    .map(({ path, name, version }) => `\n---- ${name} ${version} ----\n\n${licenseOf(path, name)}\n`);
  return `authrealm ${VERSION} is licensed under the Apache License, Version 2.0, whose text is below. Its files contain the Bun
runtime, whose licenses are listed at https://bun.com/docs/project/license, and packages, whose licenses follow that text.

${readFileSync(join(ROOT, 'LICENSE'), 'utf8').trim()}
${parts.join('')}`;
}

function licenseOf(path: string, name: string): string {
  const files = readdirSync(join(ROOT, path)).filter((file) => /^licen[cs]e/i.test(file));
  const added = join(FROM_REPOSITORIES, `${name}.txt`);
  if (files.length === 0 && existsSync(added)) return readFileSync(added, 'utf8').trim();
  if (files.length === 0) throw new Error(`${path} has no license text: a release must not contain it`);
  return files.map((file) => readFileSync(join(ROOT, path, file), 'utf8').trim()).join('\n\n');
}

if (import.meta.main) {
  await runBuild(async (folder) => {
    const path = join(folder, `authrealm-${VERSION}-licenses.txt`);
    writeFileSync(path, licenseTexts());
    return [path];
  });
}
