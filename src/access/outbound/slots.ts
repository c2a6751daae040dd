import { overloaded } from '../../model/fault.ts';

/** Slots for `max` requests in progress at a target, `perCallerMax` of them for one caller, if it is known. */
export function openSlots(max: number, perCallerMax: number) {
  const taken: { readonly caller: string | undefined; readonly target: string }[] = [];
  return {
    count: () => taken.length,
    /** Takes a slot, and returns the function that releases it. Throws Fault `overloaded` if there is none. */
    take(caller: string | undefined, target = ''): () => void {
      const there = taken.filter((other) => other.target === target);
      const own = there.filter((other) => caller !== undefined && other.caller === caller);
      if (there.length >= max || own.length >= perCallerMax) throw overloaded('CONCURRENCY_LIMIT');
      const slot = { caller, target };
      taken.push(slot);
      return () => taken.splice(taken.indexOf(slot), 1);
    },
  };
}
