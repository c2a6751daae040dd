import { expect, test } from 'bun:test';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

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

/** What serves, and what copies databases. */
const LATE = ['src/app.ts', 'src/http/server.ts', 'node_modules/pino/pino.js', 'src/store/copying/tables.ts'];

test('a command line is read without what serves and what copies: only the commands that do so load it', async () => {
  const loaded = await loadedWith('src/cli/cli.ts');
  expect(loaded).toContain('src/cli/serve.ts');
  expect(loaded).toContain('src/cli/copy.ts');
  expect(LATE.filter((path) => loaded.includes(path))).toEqual([]);
  const later = [
    ...(await loadedWith('src/cli/serving.ts')),
    ...(await loadedWith('src/store/copying/open.ts')),
  ];
  expect(LATE.filter((path) => later.includes(path))).toEqual(LATE);
});
