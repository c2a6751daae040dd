/** Loaded before the service: it lets go of its garbage and of compiled code when it is told to, and is otherwise as it is. */
process.on('SIGUSR2', () => {
  Bun.gc(true);
  // Takes effect once no code runs; what is called later is compiled anew.
  Bun.shrink();
});
