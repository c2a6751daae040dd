/** Resolves with undefined where the promise takes longer. */
export function within<T>(msMax: number, promise: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), msMax);
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer));
}
