/** What one process at a time does for all of them, on whichever machine. */
export interface Lease {
  readonly name: string;
  /** Who has it: unlike any other process. */
  readonly holder: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly until: number;
}

/**
 * Where leases rest. Clocks of machines may be apart by LIMITS.clockLeewayMs: what two do at once for that long must do no
 * harm.
 */
export interface LeaseStore {
  /** Takes a lease that is free or over, or goes on with one's own. Answers whether it is had. */
  take(lease: Lease): Promise<boolean>;
  giveBack(name: string, holder: string): Promise<void>;
}
