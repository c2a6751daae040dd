import { readFileSync } from 'node:fs';
import { descendantsOf, readProc } from '../test/support/process_tree.ts';

/** What a process and its descendants have used since they started. */
export interface ProcessUsage {
  /** Microseconds of processor time, in user and kernel mode. */
  readonly cpuMicros: number;
  /**
   * Calls of `read`, `pread` and `readv`: of files, pipes and event descriptors. Data of sockets is received by other
   * calls, so under a load of lookups nearly all are reads of the database file that its mapping does not cover.
   */
  readonly readCalls: number;
}

/** The kernel reports processor time in ticks of this length, whatever its own timer. */
const TICK_MICROS = 10_000;

/** Sums the usage of processes and their descendants, those that have ended included. */
export function usageOf(...pids: readonly number[]): ProcessUsage {
  const each = pids
    .flatMap((pid) => [pid, ...descendantsOf(pid)])
    .map((member) => ({
      cpuMicros: cpuTicks(member) * TICK_MICROS,
      readCalls: Number(/^syscr: (\d+)$/m.exec(readProc(`/proc/${member}/io`))?.[1] ?? 0),
    }));
  const sum = (figure: keyof ProcessUsage) => each.reduce((total, usage) => total + usage[figure], 0);
  return { cpuMicros: sum('cpuMicros'), readCalls: sum('readCalls') };
}

/** `utime`, `stime`, and the same of children that have ended (proc_pid_stat(5), fields 14 to 17). */
function cpuTicks(pid: number): number {
  const text = readProc(`/proc/${pid}/stat`);
  // The name of the command may contain spaces, and ends with the last parenthesis. Field 3 follows it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((total, field) => total + Number(field), 0);
}

/** The bytes of a file that a process has mapped; by several connections, those of the largest mapping. */
export function mappedBytes(pid: number, file: string): number {
  const mappings = readFileSync(`/proc/${pid}/maps`, 'utf8')
    .split('\n')
    .filter((line) => line.endsWith(` ${file}`))
    .map((line) => {
      const [from = '', to = ''] = (line.split(' ')[0] ?? '').split('-');
      return Number.parseInt(to, 16) - Number.parseInt(from, 16);
    });
  return Math.max(0, ...mappings);
}
