import { join } from 'node:path';
import { installPackages } from '../scripts/install_packages.ts';

/** Installs the packages of this folder, and builds the documentation with them: `bun site/build.ts [FOLDER]`. */

await installPackages('site');
// In a process that starts now: Bun remembers of the folder of a module that it had no `node_modules`.
const command = [process.execPath, join(import.meta.dir, 'site.tsx'), ...process.argv.slice(2)];
process.exitCode = await Bun.spawn(command, { stdio: ['inherit', 'inherit', 'inherit'] }).exited;
