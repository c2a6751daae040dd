import { afterAll } from 'bun:test';
import { freshFolder } from './folder.ts';
import { runCommand } from './processes.ts';

const mounted: string[] = [];

afterAll(async () => {
  for (const folder of mounted.splice(0)) await runCommand(['umount', '--lazy', folder]);
});

/** A folder on a file system of this size, if this system allows the mount. */
export async function smallFolder(megabytes: number): Promise<string | undefined> {
  const folder = freshFolder();
  const options = `size=${megabytes}m,mode=0700`;
  const isMounted = await runCommand(['mount', '-t', 'tmpfs', '-o', options, 'authrealm-test', folder]).then(
    ({ code }) => code === 0,
    () => false,
  );
  if (isMounted) mounted.push(folder);
  return isMounted ? folder : undefined;
}
