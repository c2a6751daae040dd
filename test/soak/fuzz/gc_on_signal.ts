/** Preloaded into the service: on SIGUSR2 it collects garbage and discards compiled code. */
process.on('SIGUSR2', () => {
  Bun.gc(true);
  // Takes effect once no code runs; functions are compiled again when they are called.
  Bun.shrink();
});
