import { readdirSync, readFileSync } from 'node:fs';

/** The descendants of a process and their resources, from /proc. */

export function descendantsOf(pid: number): readonly number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

export function childrenOf(pid: number): readonly number[] {
  const listed = readProc(`/proc/${pid}/task/${pid}/children`).trim();
  return listed === '' ? [] : listed.split(' ').map(Number);
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

/** Resources of processes. */
export interface ProcessUsage {
  readonly processes: number;
  readonly residentMb: number;
  /** Without mapped files, which the system can evict. */
  readonly anonymousMb: number;
  readonly descriptors: number;
}

/** Resources of a process and its descendants. */
export function usageOf(pid: number): ProcessUsage {
  return usageOfAll([pid, ...descendantsOf(pid)]);
}

export function usageOfAll(pids: readonly number[]): ProcessUsage {
  const statuses = pids.map((each) => readProc(`/proc/${each}/status`));
  const sum = (field: string) => {
    const line = new RegExp(`^${field}:\\s+(\\d+)`, 'm');
    return statuses.reduce((total, status) => total + Number(line.exec(status)?.[1] ?? 0), 0);
  };
  return {
    processes: pids.length,
    residentMb: sum('VmRSS') / 1_024,
    anonymousMb: sum('RssAnon') / 1_024,
    descriptors: pids.reduce((total, each) => total + descriptorsOf(each), 0),
  };
}

/** The resident part of a mapped file (proc_pid_smaps(5)). */
export function mappedMb(pid: number, file: string): number {
  const mappings = readProc(`/proc/${pid}/smaps`).split(/\n(?=[\da-f]+-[\da-f]+ )/);
  return mappings
    .filter((mapping) => mapping.split('\n', 1)[0]?.endsWith(` ${file}`))
    .reduce((sum, mapping) => sum + Number(/^Rss:\s+(\d+)/m.exec(mapping)?.[1] ?? 0) / 1_024, 0);
}

function descriptorsOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

/** A file of /proc; empty after the process has exited. */
export function readProc(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
