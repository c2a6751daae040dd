import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Where `scripts/test.ts` reads what each test file took. */
const REPORT = process.env.AUTHREALM_TEST_FILE_SECONDS;

/**
 * Processor seconds of this process and of the children that it has waited for (proc(5), `/proc/pid/stat`, fields 14 to 17); 0 where
 * the system has no such file.
 */
function processorSeconds(): number {
  if (process.platform !== 'linux') return 0;
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) / 100, 0);
}

/** Measures the test file that the process has begun. Returns the function that reports its seconds. */
export function measureFile(): () => void {
  if (REPORT === undefined) return () => undefined;
  const start = { wall: performance.now(), processor: processorSeconds() };
  return () => {
    const wall = (performance.now() - start.wall) / 1_000;
    const processor = processorSeconds() - start.processor;
    const words = [relative(ROOT, Bun.main), process.env.AUTHREALM_TEST_ENGINE ?? 'sqlite'];
    appendFileSync(REPORT, `${[...words, wall.toFixed(2), processor.toFixed(2)].join('\t')}\n`);
  };
}
