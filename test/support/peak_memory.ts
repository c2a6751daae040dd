import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from './processes.ts';
import { freshFolder } from './service.ts';

/** The resident memory of a process in bytes, now and at its peak. `status`: the file of that name in /proc, or a copy. */
export function residentMemory(status: string): { readonly now: number; readonly peak: number } {
  const text = readFileSync(status, 'utf8');
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]) * 1_024;
  return { now: bytes('VmRSS'), peak: bytes('VmHWM') };
}

/**
 * Runs a program of Bun to its end. Returns its peak memory in bytes as well: the `resourceUsage` of a child includes the memory of this
 * process, of which it is a copy before it runs the program.
 */
export async function runMeasured(command: readonly string[]) {
  const folder = freshFolder();
  const [reporter, status] = [join(folder, 'reporter.ts'), join(folder, 'status')];
  const copy = `copyFileSync('/proc/self/status', ${JSON.stringify(status)})`;
  writeFileSync(reporter, `import { copyFileSync } from 'node:fs';\nprocess.on('exit', () => ${copy});\n`);
  const result = await runCommand(command, { BUN_OPTIONS: `--preload ${reporter}` });
  return { ...result, peakBytes: residentMemory(status).peak };
}
