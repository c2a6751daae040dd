import { afterAll } from 'bun:test';
import { statSync } from 'node:fs';
import { freshFolder } from './folder.ts';
import { runCommand } from './processes.ts';

const mounted: string[] = [];

afterAll(async () => {
  for (const folder of mounted.splice(0)) await runCommand(['umount', '--lazy', folder]);
});

/** A folder with a file system of this size, if this system allows the mount. It keeps its owner. */
export async function smallFolder(megabytes: number, folder = freshFolder()): Promise<string | undefined> {
  const { uid, gid } = statSync(folder);
  const options = `size=${megabytes}m,mode=0700,uid=${uid},gid=${gid}`;
  const isMounted = await runCommand(['mount', '-t', 'tmpfs', '-o', options, 'authrealm-test', folder]).then(
    ({ code }) => code === 0,
    () => false,
  );
  if (isMounted) mounted.push(folder);
  return isMounted ? folder : undefined;
}
