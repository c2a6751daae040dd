import { useEffect, useState } from 'preact/hooks';

/** A value that components subscribe to. */
interface Observable<T> {
  get(): T;
  set(value: T): void;
  /** Returns the function that unsubscribes. */
  subscribe(listener: (value: T) => void): () => void;
}

export function observable<T>(initial: T): Observable<T> {
  let current = initial;
  const listeners = new Set<(value: T) => void>();
  return {
    get: () => current,
    set(value) {
      current = value;
      for (const listener of [...listeners]) listener(value);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useObservable<T>(observed: Observable<T>): T {
  const [value, setValue] = useState(observed.get());
  useEffect(() => {
    setValue(() => observed.get());
    return observed.subscribe((next) => setValue(() => next));
  }, [observed]);
  return value;
}
