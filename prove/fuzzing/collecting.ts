/** Loaded before the service: it collects its garbage when it is told to, and is otherwise as it is. */
process.on('SIGUSR2', () => Bun.gc(true));
