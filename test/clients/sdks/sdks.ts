import { installPackages } from '../../../scripts/install_packages.ts';

/**
 * The published clients, installed when a suite first imports them. They are in a folder without other modules: Bun remembers of
 * each folder that it read whether it had `node_modules`. It also reads those below a folder in its arguments: pass files.
 */

await installPackages('test/clients/sdks/npm');

export const { jsSdk, mappingSdk, shopperSdk } = await import('./npm/sdks.ts');
