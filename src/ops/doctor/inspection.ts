import { Refusal } from '../../model/fault.ts';
import type { StoredId } from '../../model/id.ts';
import type { MaybePromise } from '../../model/store.ts';

/** One problem. It names tables and IDs, never personal data. */
export interface CheckFinding {
  readonly says: string;
  readonly table?: string;
  readonly realm?: string;
  readonly ids?: readonly string[];
}

export interface CheckReport {
  readonly check: string;
  readonly facts: readonly string[];
  /** The first `FINDINGS_SHOWN` findings; `total` counts all of them. */
  readonly findings: readonly CheckFinding[];
  readonly total: number;
  /** Information that is no problem; bounded like the findings. */
  readonly notes: readonly CheckFinding[];
  readonly notesTotal: number;
  /** Why the check could not be completed. */
  readonly unchecked: string | undefined;
}

export interface CheckReporter {
  fact(text: string): void;
  find(finding: CheckFinding): void;
  note(finding: CheckFinding): void;
}

export interface Check {
  readonly name: string;
  readonly run: (reporter: CheckReporter) => MaybePromise<void>;
}

export const FINDINGS_SHOWN = 20;

/** Runs a check. An error becomes `unchecked` of the report, so that the other checks still run. */
export async function runCheck({ name, run }: Check): Promise<CheckReport> {
  const facts: string[] = [];
  const findings: CheckFinding[] = [];
  const notes: CheckFinding[] = [];
  let total = 0;
  let notesTotal = 0;
  let unchecked: string | undefined;
  const reporter: CheckReporter = {
    fact: (text) => facts.push(text),
    find: (finding) => ++total <= FINDINGS_SHOWN && findings.push(finding),
    note: (finding) => ++notesTotal <= FINDINGS_SHOWN && notes.push(finding),
  };
  try {
    await run(reporter);
  } catch (error) {
    const { message, cause } = error as Error;
    unchecked = cause instanceof Error && !(error instanceof Refusal) ? cause.message : message;
  }
  return { check: name, facts, findings, total, notes, notesTotal, unchecked };
}

export function isHealthy({ total, unchecked }: CheckReport): boolean {
  return total === 0 && unchecked === undefined;
}

export interface MigrationState {
  readonly applied: readonly { readonly version: number; readonly name: string; readonly program: string }[];
  readonly known: readonly { readonly version: number; readonly name: string }[];
}

/** A trusted proxy that sent requests without a readable client address. */
export interface UnreadableProxy {
  readonly address: string;
  /** The last such request that was logged, in milliseconds since the epoch. */
  readonly at: number;
}

/** A realm in which users may sign in through providers of so many issuers, or sign up. */
export interface RealmSignIn {
  readonly realm: StoredId;
  readonly policy: string;
  readonly redirect_uris: string;
  readonly issuers: number;
  /** Users who signed up after an instant; null without self-signup. */
  readonly signups: number | null;
}

/** Rows of an embedded engine come at once. */
export type Rows<T> = Iterable<T> | AsyncIterable<T>;

/** What an engine reports about itself. */
export interface EngineState {
  readonly facts: readonly string[];
  readonly findings: readonly string[];
}

/**
 * A read-only view of a database for `doctor`: each query in its own snapshot. Every member may throw an error of the engine if the
 * database or its schema is not as expected.
 */
export interface Inspection {
  readonly engine: () => MaybePromise<string>;
  /** For a database server: whether acknowledged writes survive a crash, and whether a connection pooler is in use. */
  readonly server: () => MaybePromise<EngineState>;
  readonly migrations: () => Promise<MigrationState>;
  /** Tables, columns, constraints and indexes that differ from the migrated schema. */
  readonly schema: () => Rows<{ readonly type: string; readonly name: string; readonly is: string }>;
  /** Results of the engine's own integrity check of pages, indexes and references. */
  readonly integrity: () => Rows<string>;
  /** Trusted proxies that sent no readable client address. */
  readonly unreadableProxies: () => Promise<readonly UnreadableProxy[]>;
  readonly realmSignIns: (since: number) => MaybePromise<Iterable<RealmSignIn>>;
  readonly close: () => MaybePromise<void>;
}

/** The checks of the stored data. */
export function recordChecks(inspection: Inspection): readonly Check[] {
  return Object.entries(CHECKS).map(([name, check]) => ({
    name,
    run: (reporter) => check(inspection, reporter),
  }));
}

/** Quick ones first. What a constraint prevents or `audit verify` finds is not checked: docs/decisions/0023-doctor.md. */
const CHECKS: Readonly<Record<string, (of: Inspection, reporter: CheckReporter) => Promise<void>>> = {
  async server(inspection, reporter) {
    const { facts, findings } = await inspection.server();
    for (const fact of facts) reporter.fact(fact);
    for (const says of findings) reporter.find({ says });
  },
  async migrations(inspection, reporter) {
    const { applied, known } = await inspection.migrations();
    const done = new Set(applied.map(({ version }) => version));
    const newest = known.at(-1)?.version ?? 0;
    for (const { version, name, program } of applied) {
      reporter.fact(`${version} ${name}, applied by ${program}`);
      const says = `schema ${version} is newer than this program: install authrealm ${program} or newer`;
      if (version > newest) reporter.find({ says });
    }
    for (const { version, name } of known)
      if (!done.has(version))
        reporter.find({ says: `${version} ${name} is pending: run "authrealm migrate"` });
  },
  async schema(inspection, reporter) {
    for await (const { type, name, is } of inspection.schema())
      reporter.find({ says: `${type} ${name} is ${is}` });
  },
  async integrity(inspection, reporter) {
    for await (const says of inspection.integrity()) reporter.find({ says });
  },
  /** Notes: a command on the host of the proxy has its address as well. */
  async proxies(inspection, reporter) {
    for (const { address, at } of await inspection.unreadableProxies()) {
      const says = `requests from the trusted proxy ${address} had no readable client address, last at ${new Date(at).toISOString()}: its clients share the limits of one address until it sends X-Forwarded-For`;
      reporter.note({ says });
    }
  },
};
