/** Runs one task at a time. All calls during a run share the next run. */
export function openSerialRunner(
  runOnce: () => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let current = Promise.resolve();
  let next: Promise<void> | undefined;
  return () => {
    next ??= current.then(async () => {
      next = undefined;
      await runOnce().catch(onError);
    });
    current = next;
    return next;
  };
}
