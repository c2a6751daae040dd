import { useEffect, useState } from 'preact/hooks';

/** Debounce of typing. */
const PAUSE_MS = 180;

/** A value after it has not changed for a moment. */
export function useDebounced(value: string): string {
  const [debounced, setDebounced] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(value), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return debounced;
}
