import type { Resource } from '../resource.ts';
import { RESOURCES } from '../resources.ts';
import type { ChangeVerb } from './change.ts';

/** The number of each verb in stored log entries. */
const VERB_NUMBERS: Readonly<Record<ChangeVerb, number>> = { created: 1, updated: 2, deleted: 3, erased: 4 };

export const CHANGE_VERBS = Object.keys(VERB_NUMBERS) as readonly ChangeVerb[];

/** More than verbs will ever need. */
const NUMBERS_PER_RESOURCE = 8;

const NUMBER_BY_EVENT: ReadonlyMap<string, number> = new Map(
  RESOURCES.flatMap(({ name, number }) =>
    Object.entries(VERB_NUMBERS).map(([verb, verbNumber]): [string, number] => [
      `${name}.${verb}`,
      number * NUMBERS_PER_RESOURCE + verbNumber,
    ]),
  ),
);

const EVENT_BY_NUMBER: ReadonlyMap<number, string> = new Map(
  [...NUMBER_BY_EVENT].map(([event, number]) => [number, event]),
);

/** The number of an event in stored log entries. Throws if there is none: a bug of the caller. */
export function eventNumber(event: string): number {
  const number = NUMBER_BY_EVENT.get(event);
  if (number === undefined) throw new Error(`no event ${event}`);
  return number;
}

/** The event of a number; `unknown-<number>` for one that only a later release knows. */
export function eventNumbered(number: number): string {
  return EVENT_BY_NUMBER.get(number) ?? `unknown-${number}`;
}

/** The resource that an event is about; undefined for one that this release does not know. */
export function eventResource(event: string): Resource | undefined {
  return RESOURCES.find(({ name }) => event.startsWith(`${name}.`));
}
