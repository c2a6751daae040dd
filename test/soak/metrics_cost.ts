import { join } from 'node:path';

/** The share of the lookup rate that must remain with metrics and rate limits. */
const RATIO_MIN = 0.9;

const script = join(import.meta.dir, '../../bench/with_metrics.ts');
const child = Bun.spawn([process.execPath, script, ...process.argv.slice(2)], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const lastLine = (await new Response(child.stdout).text()).trim().split('\n').at(-1) ?? '';
if ((await child.exited) !== 0) throw new Error('bench/with_metrics.ts failed');
const { users, ratio } = JSON.parse(lastLine) as { readonly users: number; readonly ratio: number };
const passed = ratio >= RATIO_MIN;
console.log(
  `${users.toLocaleString('en')} users: lookup rate with metrics and rate limits ${ratio.toFixed(2)} of the rate without${passed ? '' : ' (!)'}`,
);
process.exitCode = passed ? 0 : 1;
