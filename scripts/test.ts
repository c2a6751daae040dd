import { fileURLToPath } from 'node:url';

/**
 * Runs the whole suite: most files side by side, then those that need the machine to themselves. Arguments are handed on,
 * and then there is one run of what they name.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * What hashes passwords, which is done at the lowest priority and given up after two seconds, or measures how long
 * something takes.
 */
const ALONE = [
  'test/api/**',
  'test/children.test.ts',
  'test/client*.test.ts',
  'test/concurrent_writes.test.ts',
  'test/crowded.test.ts',
  'test/document*.test.ts',
  'test/filter.test.ts',
  'test/guides.test.ts',
  'test/jssdk.test.ts',
  'test/list*.test.ts',
  'test/log.test.ts',
  'test/model.test.ts',
  'test/passwords.test.ts',
  'test/records_command.test.ts',
  'test/releases.test.ts',
  'test/seventh*.test.ts',
  'test/shopper.test.ts',
  'test/wire.test.ts',
] as const;

const isAlone = (path: string): boolean => ALONE.some((pattern) => new Bun.Glob(pattern).match(path));
const files = [...new Bun.Glob('test/**/*.test.ts').scanSync(ROOT)].sort();

async function run(...words: readonly string[]): Promise<boolean> {
  const child = Bun.spawn([process.execPath, 'test', ...words], {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return (await child.exited) === 0;
}

const named = process.argv.slice(2);
const outcomes =
  named.length > 0
    ? [await run(...named)]
    : [
        await run('--parallel=2', ...files.filter((path) => !isAlone(path)).map((path) => `./${path}`)),
        await run(...files.filter(isAlone).map((path) => `./${path}`)),
      ];
process.exitCode = outcomes.every(Boolean) ? 0 : 1;
