import { join } from 'node:path';

/** What lookups must keep of their rate where they are counted, and judged by rates. */
const KEPT_MIN = 0.9;

const script = join(import.meta.dir, '../../bench/with_metrics.ts');
const child = Bun.spawn([process.execPath, script, ...process.argv.slice(2)], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const said = (await new Response(child.stdout).text()).trim().split('\n').at(-1) ?? '';
if ((await child.exited) !== 0) throw new Error('bench/with_metrics.ts failed');
const { users, kept } = JSON.parse(said) as { readonly users: number; readonly kept: number };
const holds = kept >= KEPT_MIN;
console.log(
  `${users.toLocaleString('en')} users: ${kept.toFixed(2)} of the rate of lookups is kept with metrics and rates${holds ? '' : ' (!)'}`,
);
process.exitCode = holds ? 0 : 1;
