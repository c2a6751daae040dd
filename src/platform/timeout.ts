/**
 * Settles as the promise does within `ms`, and otherwise as `onTimeout` does: with the value that it returns, or the
 * error that it throws. Its outcome counts even where `onTimeout` makes the promise settle, as by cancelling it. The
 * work behind the promise goes on unless `onTimeout` ends it; a rejection after the time is ignored.
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
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
