import type { AuditEntry } from '../domain/audit_entry.ts';
import type { Clock } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LogStore } from './port.ts';

/** Logs sign-ins, in at most 60 entries of a username an hour, so that a program that signs in without end does not fill the log. */
export interface SignInLog {
  /** Writes the entry of a sign-in. From the sixtieth within an hour on it only counts them, in this process. */
  add(entry: AuditEntry): Promise<void>;
  /**
   * Writes an entry for each username with the number of sign-ins that were counted in hours that have ended, or in `all`. Returns how many
   * entries. If it rejects, the next call writes them.
   */
  writeNumbers(all?: 'all'): Promise<number>;
}

const HOUR_MS = 3_600_000;
/** Of a username within an hour. The last one has the number of those without an entry. */
const ENTRIES_MAX = 60;

/** The hour that began with a sign-in of a username. */
interface Hour {
  readonly endsAt: number;
  entries: number;
  /** Sign-ins without an entry, and the first of them. */
  counted: number;
  first?: AuditEntry;
}

export function openSignInLog(
  { append }: Pick<LogStore, 'append'>,
  { now, monotonic, mintId }: Pick<Clock, 'now' | 'monotonic' | 'mintId'>,
): SignInLog {
  /** By the username, in the order in which they end. */
  const hours = new Map<string, Hour>();
  let unwritten: readonly AuditEntry[] = [];

  function end(name: string, { first, counted }: Hour): void {
    hours.delete(name);
    if (!first) return;
    const detail = { count: counted, since: new Date(first.at).toISOString() };
    const caller = { actor: 'authrealm', address: undefined, requestId: undefined };
    unwritten = [...unwritten, { ...first, ...caller, id: mintId(), detail, at: now() }];
  }

  function endUntil(time: number): void {
    for (const [name, hour] of hours) {
      if (hour.endsAt > time) return;
      end(name, hour);
    }
  }

  function hourOf(name: string): Hour {
    endUntil(monotonic());
    const hour = hours.get(name) ?? { endsAt: monotonic() + HOUR_MS, entries: 0, counted: 0 };
    hours.set(name, hour);
    const [oldest] = hours;
    if (oldest && hours.size > LIMITS.rateBucketsMax) end(...oldest);
    return hour;
  }

  return {
    async add(entry) {
      const hour = hourOf(`${entry.realm} ${entry.object}`);
      if (hour.entries < ENTRIES_MAX - 1) {
        hour.entries += 1;
        await append([entry]);
        return;
      }
      hour.counted += 1;
      hour.first ??= entry;
    },
    async writeNumbers(all) {
      endUntil(all ? Number.POSITIVE_INFINITY : monotonic());
      const written = unwritten;
      if (written.length > 0) await append(written);
      unwritten = unwritten.slice(written.length);
      return written.length;
    },
  };
}
