import type { Distribution, Family, Gauge, Histogram, Sample } from './family.ts';

type Told = number | readonly Sample[];

/**
 * A figure that is read when it is asked for, and costs nothing until then. `read` answers one number, or a sample for
 * each set of labels. What it throws, or does not answer in time, is left out.
 */
export type Reading = Figure | Spread;

interface Named {
  readonly name: string;
  readonly help: string;
}

type Figure = Named & {
  readonly read: () => Told | Promise<Told>;
} & ({ readonly kind: 'counter' } | Pick<Gauge, 'kind' | 'across'>);

type Spread = Named & Pick<Histogram, 'kind' | 'bounds'> & { readonly read: () => readonly Distribution[] };

/** Where the rooms of the house hand in what they can tell of themselves. */
export interface Readings {
  /** Throws where the name is taken. */
  add(...readings: readonly Reading[]): void;
  read(): Promise<readonly Family[]>;
}

/** `waitMsMax`: how long one of them may take. */
export function openReadings(waitMsMax: number): Readings {
  const readings = new Map<string, Reading>();
  return {
    add(...more) {
      for (const reading of more) {
        if (readings.has(reading.name)) throw new Error(`${reading.name} is read already`);
        readings.set(reading.name, reading);
      }
    },
    async read() {
      const families = await Promise.all(
        [...readings.values()].map((reading) => familyOf(reading, waitMsMax)),
      );
      return families.filter((family) => family !== undefined);
    },
  };
}

async function familyOf(reading: Reading, waitMsMax: number): Promise<Family | undefined> {
  if (reading.kind === 'histogram') {
    const { read, ...described } = reading;
    return { ...described, distributions: read() };
  }
  const { read, ...described } = reading;
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), waitMsMax);
  try {
    const told = await Promise.race([read(), late]);
    if (told === undefined) return undefined;
    return { ...described, samples: typeof told === 'number' ? [{ labels: {}, value: told }] : told };
  } catch {
    // Where a figure cannot be read, the others are still wanted.
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
