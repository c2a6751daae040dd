import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { installPackages } from '../../scripts/install_packages.ts';
import { ROOT } from '../../scripts/release/build.ts';
import { runCommand } from '../support/processes.ts';

/** Code that needs the packages of a lock file of its own, which `npm run check` leaves out (CONTRIBUTING.md#own-lock-files). */

test.each([
  ['site', 'site'],
  ['test/clients/sdks', 'test/clients/sdks/npm'],
])(
  '%s has correct types',
  async (folder, packages) => {
    await installPackages(packages);
    const tsc = join(ROOT, 'node_modules/.bin/tsc');
    const { stdout, stderr, code } = await runCommand([tsc, '--noEmit', '--project', join(ROOT, folder)]);
    expect({ stdout, stderr, code }).toEqual({ stdout: '', stderr: '', code: 0 });
  },
  300_000,
);
