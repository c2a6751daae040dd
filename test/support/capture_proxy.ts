import { atEnd } from './ending.ts';

/** A proxy in the environment that no request should reach. */
export interface CaptureProxy {
  /** Proxy variables for all hosts. */
  readonly environment: Readonly<Record<string, string>>;
  /** The method of every received request. */
  readonly methods: readonly string[];
  stop(): Promise<void>;
}

const VARIABLES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].flatMap((name) => [name, name.toLowerCase()]);

export function startCaptureProxy(): CaptureProxy {
  const methods: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ method }) => {
      methods.push(method);
      return new Response(undefined, { status: 400 });
    },
  });
  atEnd(() => server.stop(true));
  return {
    environment: {
      ...Object.fromEntries(VARIABLES.map((name) => [name, server.url.origin])),
      NO_PROXY: '',
      no_proxy: '',
    },
    methods,
    stop: () => server.stop(true),
  };
}
