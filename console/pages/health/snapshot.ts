type Labels = Readonly<Record<string, string>>;

/** Everything that is measured under one name (docs/operating.md, Metrics). */
export interface Family {
  readonly name: string;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly samples?: readonly { readonly labels: Labels; readonly value: number }[];
  /** Of a histogram, in seconds. */
  readonly bounds?: readonly number[];
  /** Counts at or under each bound and over the one before it, and last over all of them. */
  readonly distributions?: readonly {
    readonly labels: Labels;
    readonly counts: readonly number[];
    readonly sum: number;
  }[];
}

/** What the service had measured at a moment. */
export interface Snapshot {
  /** Milliseconds, by the clock that begins with the page. */
  readonly at: number;
  readonly families: ReadonlyMap<string, Family>;
}

export function snapshotOf(families: readonly Family[], at: number): Snapshot {
  return { at, families: new Map(families.map((family) => [family.name, family])) };
}
