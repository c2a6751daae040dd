const DAY_MS = 86_400_000;

/** The timestamp `days` before another one; both in milliseconds since the epoch. */
export function daysBefore(at: number, days: number): number {
  return at - days * DAY_MS;
}
