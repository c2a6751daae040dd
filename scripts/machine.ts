import { existsSync, readdirSync } from 'node:fs';
import { readProc } from '../prove/process_tree.ts';

/** What a machine does, as Linux tells it: whoever reads that a suite gave up sees what kept it waiting. */

const STAT = '/proc/stat';
const LOOK_MS = 1_000;
/** Processes under this share of a core are not worth a word. */
const SHARE_MIN = 0.05;
const NAMED_MAX = 6;
const NAME_MAX = 100;

/** Of all processors together, in ticks, since the machine was started. */
interface Times {
  readonly idle: number;
  /** What other machines on the same processors took. */
  readonly stolen: number;
  readonly whole: number;
}

function times(): Times {
  const [, ...spent] = (readProc(STAT).split('\n')[0] ?? '').split(/ +/).map(Number);
  const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, softirq = 0, stolen = 0] = spent;
  const whole = user + nice + system + idle + waiting + irq + softirq + stolen;
  return { idle: idle + waiting, stolen, whole };
}

/** What each process took, by its number, in ticks. */
function timesOfProcesses(): ReadonlyMap<string, number> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const taken = pids.flatMap((pid): [string, number][] => {
    // The name may hold anything; behind it come the state and numbers, of which the 12th and 13th are its time.
    const [, rest = ''] = /\) (.*)/s.exec(readProc(`/proc/${pid}/stat`)) ?? [];
    const numbers = rest.split(' ').map(Number);
    return rest === '' ? [] : [[pid, (numbers[11] ?? 0) + (numbers[12] ?? 0)]];
  });
  return new Map(taken);
}

/** The beginning of its command line; that of the kernel's own is empty. */
function nameOf(pid: string): string {
  return `${readProc(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').slice(0, NAME_MAX).trim()} (${pid})`;
}

/** What happens within a second, in a sentence; undefined where the system does not tell. */
export async function lookAtMachine(): Promise<string | undefined> {
  if (!existsSync(STAT)) return undefined;
  const [before, busyBefore] = [times(), timesOfProcesses()];
  await Bun.sleep(LOOK_MS);
  const [after, busyAfter] = [times(), timesOfProcesses()];
  const share = (part: number) => `${Math.round((100 * part) / Math.max(1, after.whole - before.whole))} %`;
  const busy = [...busyAfter]
    .map(([pid, spent]) => [pid, spent - (busyBefore.get(pid) ?? spent)] as const)
    .filter(
      ([, spent]) => spent >= ((after.whole - before.whole) * SHARE_MIN) / navigator.hardwareConcurrency,
    )
    .sort(([, one], [, other]) => other - one)
    .slice(0, NAMED_MAX)
    .map(([pid, spent]) => `${nameOf(pid)} ${share(spent)}`);
  const load = readProc('/proc/loadavg').split(' ').slice(0, 3).join(' ');
  const idle = `idle ${share(after.idle - before.idle)}, taken by others ${share(after.stolen - before.stolen)}`;
  return [`load ${load}, ${idle}`, ...busy].join('; ');
}

/** How long a calm machine is waited for at most. */
const CALM_MS_MAX = 60_000;

/** Resolves once the machine has been idle for half of a second: what ran before leaves servers and browsers that end by themselves. */
export async function calm(): Promise<void> {
  if (!existsSync(STAT)) return;
  const end = performance.now() + CALM_MS_MAX;
  for (let before = times(); performance.now() < end; ) {
    await Bun.sleep(LOOK_MS);
    const now = times();
    if (now.idle - before.idle >= (now.whole - before.whole) / 2) return;
    before = now;
  }
}
