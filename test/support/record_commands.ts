import { expect } from 'bun:test';
import { runAuthrealm, type runCommand } from './processes.ts';
import { type Service, startService } from './service.ts';

const SCOPE = ['realms', 'profiles', 'users', 'profile-infos'].flatMap((noun) => [
  `${noun}:read`,
  `${noun}:write`,
]);

/** The standard input of `createRecord`. */
export const PASSWORD = 'correct horse battery staple';

export interface RunOptions {
  readonly input?: string | undefined;
  readonly more?: Record<string, string>;
}

type Printed = Record<string, string> & { links: Record<string, string> };

/** The commands that read and write records, with a service that they call. */
export interface RecordCommands {
  readonly service: Service;
  /** The URL of the service and the credentials of a client. */
  readonly environment: Readonly<Record<string, string>>;
  /** The ID of a realm. */
  readonly realm: string;
  /** Runs a command, which prints neither the client secret nor PASSWORD. */
  run(args: readonly string[], options?: RunOptions): ReturnType<typeof runCommand>;
  /** The standard output of a command that must succeed. */
  output(args: readonly string[], options?: RunOptions): Promise<string>;
  /** The same with `--json`, parsed. */
  json(args: readonly string[], options?: RunOptions): Promise<readonly Printed[]>;
  /** Runs `create`. Returns the ID. */
  createRecord(...args: string[]): Promise<string>;
}

export async function startRecordCommands(): Promise<RecordCommands> {
  const service = await startService({ offline: 'true' });
  const { clientId, secret } = await service.client(SCOPE.join(' '));
  const environment = {
    AUTHREALM_URL: service.url,
    AUTHREALM_CLIENT_ID: clientId,
    AUTHREALM_CLIENT_SECRET: secret,
  };

  const run: RecordCommands['run'] = async (args, { input = '', more = {} } = {}) => {
    const result = await runAuthrealm([...args], { ...environment, ...more }, input);
    for (const hidden of [secret, PASSWORD]) expect(result.stdout + result.stderr).not.toContain(hidden);
    return result;
  };

  const output: RecordCommands['output'] = async (args, options) => {
    const { code, stdout, stderr } = await run(args, options);
    expect([code, stderr]).toEqual([0, '']);
    return stdout;
  };

  const createRecord: RecordCommands['createRecord'] = async (...args) =>
    (await output(['create', ...args, '--id'], { input: `${PASSWORD}\n` })).trim();

  return {
    service,
    environment,
    realm: await createRecord('realm', 'name=Shop'),
    run,
    output,
    json: async (args, options) =>
      (await output([...args, '--json'], options))
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Printed),
    createRecord,
  };
}
