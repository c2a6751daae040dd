import { readdirSync, readFileSync } from 'node:fs';
import { attempt } from '../../src/model/attempt.ts';

/** The descendants of a process and their resources, from /proc. */

export function descendantsOf(pid: number): readonly number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

/** The children that any of its threads started. */
export function childrenOf(pid: number): readonly number[] {
  return entriesOf(`/proc/${pid}/task`).flatMap((thread) =>
    readProc(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  );
}

/** False for a zombie too, which holds no resources. */
export function isAlive(pid: number): boolean {
  const state = readProc(`/proc/${pid}/stat`).split(') ').at(-1)?.[0];
  return state !== undefined && state !== 'Z' && state !== 'X';
}

/** Whether a process exits within this time. */
export async function endsWithin(pid: number, ms = 30_000): Promise<boolean> {
  const deadline = performance.now() + ms;
  while (isAlive(pid) && performance.now() < deadline) await Bun.sleep(20);
  return !isAlive(pid);
}

export type Memory = Readonly<ReturnType<typeof memoryIn>>;

/** Resources of processes. */
export interface ResourceUsage extends Pick<Memory, 'residentMb' | 'anonymousMb'> {
  readonly processes: number;
  readonly descriptors: number;
}

/** The memory of a process; NaN after it has exited. */
export function memoryOf(pid: number): Memory {
  return memoryIn(readProc(`/proc/${pid}/status`));
}

/** The memory figures in a text of /proc/PID/status (proc_pid_status(5)); NaN for absent ones. */
export function memoryIn(status: string) {
  const mb = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1_024;
  return {
    residentMb: mb('VmRSS'),
    residentPeakMb: mb('VmHWM'),
    /** Without mapped files, which the system can evict. */
    anonymousMb: mb('RssAnon'),
    fileMb: mb('RssFile'),
  };
}

/** Resources of a process and its descendants. */
export function resourcesOf(pid: number): ResourceUsage {
  return resourcesOfAll([pid, ...descendantsOf(pid)]);
}

export function resourcesOfAll(pids: readonly number[]): ResourceUsage {
  const memories = pids.map(memoryOf);
  // A process that has exited has none.
  const sum = (figure: keyof Memory) => memories.reduce((total, memory) => total + (memory[figure] || 0), 0);
  return {
    processes: pids.length,
    residentMb: sum('residentMb'),
    anonymousMb: sum('anonymousMb'),
    descriptors: pids.reduce((total, each) => total + entriesOf(`/proc/${each}/fd`).length, 0),
  };
}

/** The resident part of a mapped file (proc_pid_smaps(5)). */
export function mappedMb(pid: number, file: string): number {
  const mappings = readProc(`/proc/${pid}/smaps`).split(/\n(?=[\da-f]+-[\da-f]+ )/);
  return mappings
    .filter((mapping) => mapping.split('\n', 1)[0]?.endsWith(` ${file}`))
    .reduce((sum, mapping) => sum + Number(/^Rss:\s+(\d+)/m.exec(mapping)?.[1] ?? 0) / 1_024, 0);
}

/** The entries of a folder of /proc; empty after the process has exited. */
const entriesOf = (folder: string): readonly string[] => attempt(() => readdirSync(folder)) ?? [];

/** A file of /proc; empty after the process has exited. */
export function readProc(path: string): string {
  return attempt(() => readFileSync(path, 'utf8')) ?? '';
}
