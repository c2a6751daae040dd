import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { VERSION } from '../../src/model/version.ts';
import { installBinary } from './binary.ts';
import { commitSeconds, ROOT, run, runBuild, withTemporaryFolder } from './build.ts';
import { LICENSES_PATH, licenseTexts } from './licenses.ts';

/**
 * Writes the Debian package: the binary, and the units of deploy/: `bun scripts/release/deb.ts FOLDER [BINARY]`. It builds the
 * binary if none is passed. It needs dpkg of Debian 12.
 */

/** Files of the repository, and their paths in the package. */
const FILES: Readonly<Record<string, string>> = {
  'deploy/authrealm.service': 'lib/systemd/system/authrealm.service',
  'deploy/authrealm-migrate.service': 'lib/systemd/system/authrealm-migrate.service',
  'deploy/postgresql.conf': 'usr/share/doc/authrealm/examples/postgresql.conf',
};

const CONFIG = '/etc/authrealm/authrealm.conf';

/** The user and its folder exist before the first start. A service that runs is restarted by the new release. */
const POSTINST = `#!/bin/sh
set -e
if [ "$1" = configure ]; then
  adduser --system --group --quiet --home /var/lib/authrealm --no-create-home authrealm
  chgrp authrealm ${CONFIG}
  [ -d /var/lib/authrealm ] || install -d -m 0700 -o authrealm -g authrealm /var/lib/authrealm
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart authrealm.service || true
  fi
fi
`;

const PRERM = `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --now --quiet authrealm.service authrealm-migrate.service
fi
`;

/** Nothing removes the data: the master key in the folder opens every backup, and no command brings it back. */
const POSTRM = `#!/bin/sh
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
if [ "$1" = purge ] && [ -d /var/lib/authrealm ] && ! rmdir /var/lib/authrealm 2>/dev/null; then
  echo 'authrealm: kept /var/lib/authrealm with the database and its master key: remove it yourself, with the user authrealm' >&2
fi
`;

const write = (path: string, text: string, mode = 0o644): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode });
};

const readText = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

async function buildDeb(folder: string, binary?: string): Promise<readonly string[]> {
  return withTemporaryFolder(async (work) => {
    const root = join(work, 'root');
    mkdirSync(join(root, 'usr/bin'), { recursive: true });
    await installBinary(join(root, 'usr/bin/authrealm'), binary);
    for (const [from, to] of Object.entries(FILES)) write(join(root, to), readText(from));
    // It may contain AUTHREALM_MASTER_KEY. The user of the service reads it.
    write(join(root, CONFIG), readText('deploy/authrealm.conf'), 0o640);
    write(join(root, LICENSES_PATH), licenseTexts());
    const files = filesBelow(root);
    const bytes = files.reduce((sum, path) => sum + statSync(join(root, path)).size, 0);
    const control = join(root, 'DEBIAN');
    write(join(control, 'control'), await controlFile(Math.ceil(bytes / 1024)));
    write(join(control, 'conffiles'), `${CONFIG}\n`);
    write(join(control, 'md5sums'), files.map((path) => `${md5(join(root, path))}  ${path}\n`).join(''));
    for (const [name, text] of Object.entries({ postinst: POSTINST, prerm: PRERM, postrm: POSTRM }))
      write(join(control, name), text, 0o755);
    const path = join(folder, `authrealm_${debianVersion()}_amd64.deb`);
    // dpkg-deb sorts the files and gives those that are newer than the commit its time.
    const env = { SOURCE_DATE_EPOCH: String(await commitSeconds()) };
    await run(['dpkg-deb', '--root-owner-group', '-Zgzip', '--build', root, path], { env });
    return [path];
  });
}

/** A hyphen would begin the revision of the package; a tilde sorts before the release, as a prerelease must. */
const debianVersion = (): string => VERSION.replaceAll('-', '~');

async function controlFile(kibibytes: number): Promise<string> {
  const maintainer = (await run(['git', 'log', '-1', '--format=%an <%ae>'])).trim();
  return `Package: authrealm
Version: ${debianVersion()}
Architecture: amd64
Maintainer: ${maintainer}
Installed-Size: ${kibibytes}
Depends: adduser, libc6 (>= 2.17)
Section: net
Priority: optional
Description: self-hosted directory of identity links
 Answers over HTTP which subject at which issuer, and which username, is a
 user, from one SQLite file or PostgreSQL. Installing it starts nothing.
`;
}

function filesBelow(root: string): readonly string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .sort();
}

function md5(path: string): string {
  return createHash('md5').update(readFileSync(path)).digest('hex');
}

// The modes of files must not depend on the account that builds.
process.umask(0o022);
await runBuild((folder, [binary]) => buildDeb(folder, binary));
