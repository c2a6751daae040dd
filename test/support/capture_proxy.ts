/** A proxy that the environment names, and that nobody should speak to. */
export interface CaptureProxy {
  /** What makes programs that obey such variables speak to it, for any host. */
  readonly environment: Readonly<Record<string, string>>;
  /** The method of every request that came. */
  readonly methods: readonly string[];
  stop(): Promise<void>;
}

const VARIABLES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].flatMap((name) => [name, name.toLowerCase()]);

export function startCaptureProxy(): CaptureProxy {
  const seen: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ method }) => {
      seen.push(method);
      return new Response(undefined, { status: 400 });
    },
  });
  return {
    environment: {
      ...Object.fromEntries(VARIABLES.map((name) => [name, server.url.origin])),
      NO_PROXY: '',
      no_proxy: '',
    },
    methods: seen,
    stop: () => server.stop(true),
  };
}
