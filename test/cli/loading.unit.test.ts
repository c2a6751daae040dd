import { expect, test } from 'bun:test';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The modules that a process has once it has imported this one, by their path below the root. */
async function loadedWith(path: string): Promise<readonly string[]> {
  const script = `
    await import(${JSON.stringify(`${ROOT}${path}`)});
    console.log(JSON.stringify(Object.keys(require.cache)));
  `;
  const child = Bun.spawn([process.execPath, '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const loaded = JSON.parse(await new Response(child.stdout).text()) as string[];
  return loaded.map((file) => relative(ROOT, file));
}

/** What serves, copies and makes backups: files and folders, each loaded by one of these. */
const LATE = [
  'node_modules/pino/',
  'src/app.ts',
  'src/authority.ts',
  'src/counting.ts',
  'src/feed/',
  'src/http/reply.ts',
  'src/http/router.ts',
  'src/http/server.ts',
  'src/observe/',
  'src/store/backups/',
  'src/store/copying/tables.ts',
  'src/telling.ts',
  'src/workers/hasher.ts',
];
const LOADERS = [
  'src/cli/demonstration.ts',
  'src/cli/serving.ts',
  'src/store/backups/backup.ts',
  'src/store/backups/restoration.ts',
  'src/store/copying/open.ts',
];

/** Which of what is late is among these. */
const lateIn = (loaded: readonly string[]) =>
  LATE.filter((late) => loaded.some((path) => path.startsWith(late)));

test('a command line is read without what serves, copies and makes backups', async () => {
  const loaded = await loadedWith('src/cli/cli.ts');
  expect(loaded).toContain('src/cli/serve.ts');
  expect(lateIn(loaded)).toEqual([]);
  expect(LOADERS.filter((path) => loaded.includes(path))).toEqual([]);
  expect(lateIn((await Promise.all(LOADERS.map(loadedWith))).flat())).toEqual(LATE);
});
