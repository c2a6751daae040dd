import { RESOURCES } from '../../src/model/resources.ts';
import { findPort } from '../support/daemons.ts';
import type { TestDatabase } from '../support/database.ts';
import { idText, ofRealm, storedId } from '../support/log_rows.ts';
import { runClientCreate } from '../support/processes.ts';
import { FULL_SCOPE, type ParentIds } from '../support/resource_cases.ts';
import { type ClientSecret, requestToken } from '../support/token_request.ts';
import { type CommandLine, openCommandLine } from './command_line.ts';
import { bodyOf, type ModelRecord, openRandomClient, type RandomClient } from './random_client.ts';
import { openRandomWriter, type RandomWriter } from './random_writes.ts';
import { OIDC_PROFILES, REALMS, USERS } from './realm_model.ts';
import { type RestartableService, startRestartable } from './restartable_service.ts';
import { findInconsistencies, type WriteAttempt } from './write_history.ts';

export interface RandomRun {
  readonly database: TestDatabase;
  /** Receives the output of the service. */
  readonly logFile: string;
  readonly operations: number;
  /** How often processes are killed during the run. */
  readonly kills: number;
  readonly clients: number;
  readonly processes: number;
  readonly chance: () => number;
}

export interface RandomRunReport {
  readonly complaints: readonly string[];
  readonly history: readonly WriteAttempt[];
  readonly count: { readonly acknowledged: number; readonly refused: number; readonly unknown: number };
}

/**
 * Clients write at random to a service whose processes are killed at random. A model tracks the acknowledged writes; at the
 * end the records, the changes, the model and the responses must agree.
 */
export async function runRandomWrites(run: RandomRun): Promise<RandomRunReport> {
  const { database, logFile } = run;
  const secrets: ClientSecret[] = [];
  for (let client = 0; client < run.clients; client += 1) secrets.push(await createClient(database));
  const service = await startRestartable({ database, logFile, port: findPort() }, run.processes);
  const complaints: string[] = [];
  try {
    const tokens = await Promise.all(secrets.map((secret) => requestToken(service.url, secret)));
    const clients = tokens.map((token, index) =>
      openRandomClient({ name: `client${index}`, service: () => service, token: async () => token }),
    );
    const writers = await createWriters(run, clients, openCommandLine(database), (what) =>
      complaints.push(what),
    );
    await writeUntilDone(run, service, writers);
    // Deleting a realm is rare; do it at least once in each run.
    await writers[0]?.replaceRealm();
    for (const writer of writers) await writer.verify();
    const code = await service.stop();
    if (code !== 0) complaints.push(`the service exited with ${code}`);
    const history = clients.flatMap((client) => client.history);
    complaints.push(...(await findInconsistencies(database, history)));
    for (const writer of writers) complaints.push(...(await modelMismatches(database, writer)));
    const count = (outcome: string) => history.filter((attempt) => attempt.outcome === outcome).length;
    const counts = {
      acknowledged: count('acknowledged'),
      refused: count('rejected'),
      unknown: count('unknown'),
    };
    return { complaints, history, count: counts };
  } finally {
    await service.end();
  }
}

async function createWriters(
  { chance }: RandomRun,
  clients: readonly RandomClient[],
  commandLine: CommandLine,
  complain: (what: string) => void,
): Promise<readonly RandomWriter[]> {
  const sharedRecords = await createSharedRecords(clients[0] as RandomClient);
  const writers = await Promise.all(
    clients.map((client) => openRandomWriter({ chance, sharedRecords, complain, client, commandLine })),
  );
  await writers[0]?.exceedCascadeLimit();
  return writers;
}

export async function createClient(database: TestDatabase): Promise<ClientSecret> {
  const made = await runClientCreate(database, FULL_SCOPE, '--json');
  if (made.code !== 0) throw new Error(made.stderr);
  return JSON.parse(made.stdout) as ClientSecret;
}

/** A realm that all clients share, with a profile and a user. */
export async function createSharedRecords(client: RandomClient): Promise<ModelRecord[]> {
  const sharedRecords: ModelRecord[] = [];
  let home: ParentIds = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
  for (const [member, kind] of [
    ['realm', REALMS],
    ['oidcProfile', OIDC_PROFILES],
    ['user', USERS],
  ] as const) {
    const write = { method: 'POST', path: kind.collection(home), data: kind.fresh(home) } as const;
    const { id } = bodyOf(await client.untilAnswered(write)).data;
    sharedRecords.push({ kind, home, id, data: {} });
    home = { ...home, [member]: id };
  }
  return sharedRecords.map((record) => ({ ...record, home }));
}

/** All writers write concurrently until the operations are done; kills are evenly spaced, each with a random delay. */
async function writeUntilDone(
  { operations, kills, chance }: RandomRun,
  service: RestartableService,
  writers: readonly RandomWriter[],
) {
  let left = operations;
  const writing = writers.map(async (writer) => {
    while (left > 0) {
      left -= 1;
      await writer.writeOnce();
    }
  });
  for (let kill = 1; kill <= kills; kill += 1) {
    const next = operations - (operations / (kills + 1)) * kill;
    while (left > next) await Bun.sleep(1);
    await Bun.sleep(chance() * 5);
    await service.kill(chance() < 0.7 ? 'all' : 'one');
  }
  await Promise.all(writing);
}

/** Records of a writer's realm that its model does not have, and the reverse. */
export async function modelMismatches(
  database: TestDatabase,
  writer: RandomWriter,
): Promise<readonly string[]> {
  const realm = writer.realm();
  const { engine } = database.address;
  const found = new Set<string>();
  for (const { table, parent } of RESOURCES) {
    const id = idText(engine, parent ? 'id' : 'realm_id');
    const inRealm = parent ? ofRealm(engine) : `realm_id = ${storedId(engine, '?')}`;
    const sql = `select ${id} as id from ${table} where ${inRealm}`;
    for (const row of await database.query<{ id: string }>(sql, realm)) found.add(row.id);
  }
  const known = new Set(writer.ids());
  return [
    ...[...found].filter((id) => !known.has(id)).map((id) => `${id} exists and was never created`),
    ...[...known].filter((id) => !found.has(id)).map((id) => `${id} was acknowledged and is missing`),
  ];
}
