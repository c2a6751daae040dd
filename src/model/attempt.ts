/** The result of a function; undefined if it throws, where its error says no more. */
export function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}
