/**
 * Settles like the promise within `ms`, and otherwise like `onTimeout`: with the value that it returns, or the error that it
 * throws. The outcome of `onTimeout` counts even if it settles the promise, for example by cancelling it. The work of the
 * promise continues unless `onTimeout` ends it; a rejection after the timeout is ignored.
 */
export function withTimeout<T, L>(promise: Promise<T>, ms: number, onTimeout: () => L): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      try {
        resolve(onTimeout());
      } catch (error) {
        reject(error);
      }
    }, ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
