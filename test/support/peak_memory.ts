import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { memoryIn } from './process_tree.ts';
import { runCommand } from './processes.ts';
import { freshFolder } from './service.ts';

/**
 * Runs a program of Bun to its end. Returns its peak memory in MB as well: the `resourceUsage` of a child includes the memory of this
 * process, of which it is a copy before it runs the program.
 */
export async function runMeasured(command: readonly string[]) {
  const folder = freshFolder();
  const [reporter, status] = [join(folder, 'reporter.ts'), join(folder, 'status')];
  const copy = `copyFileSync('/proc/self/status', ${JSON.stringify(status)})`;
  writeFileSync(reporter, `import { copyFileSync } from 'node:fs';\nprocess.on('exit', () => ${copy});\n`);
  const result = await runCommand(command, { BUN_OPTIONS: `--preload ${reporter}` });
  return { ...result, peakMb: memoryIn(readFileSync(status, 'utf8')).residentPeakMb };
}
