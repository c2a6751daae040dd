import { RESOURCES } from '../../src/domain/resources.ts';
import type { TestDatabase } from '../support/database.ts';
import { runClientCreate } from '../support/processes.ts';
import { FULL_SCOPE, type ParentIds } from '../support/resource_cases.ts';
import { freePort } from '../support/service.ts';
import { type Asked, complaintsOf } from './ledger.ts';
import { type Operator, operatorOf } from './operator.ts';
import { bodyOf, type Kept, openSender, type Sender } from './random_client.ts';
import { openPlayer, type Player } from './random_writes.ts';
import { OIDC_PROFILES, REALMS, USERS } from './realm_model.ts';
import { type Mortal, startMortal } from './restartable_service.ts';

export interface Run {
  readonly database: TestDatabase;
  /** Where the service writes what it says. */
  readonly logFile: string;
  readonly operations: number;
  /** How often processes are killed meanwhile. */
  readonly kills: number;
  readonly clients: number;
  readonly processes: number;
  readonly chance: () => number;
}

export interface Ran {
  /** What is wrong, in sentences. */
  readonly complaints: readonly string[];
  readonly ledger: readonly Asked[];
  /** What became of the writes. */
  readonly count: { readonly acknowledged: number; readonly refused: number; readonly unknown: number };
}

/**
 * Clients write at random to a service whose processes are killed at random. A model keeps what was acknowledged; at the
 * end the records, the changes, the model and what each request was answered have to agree.
 */
export async function runAtRandom(run: Run): Promise<Ran> {
  const { database, logFile } = run;
  const secrets: Secret[] = [];
  for (let client = 0; client < run.clients; client += 1) secrets.push(await clientOf(database));
  const mortal = await startMortal({ database, logFile, port: await freePort() }, run.processes);
  const complaints: string[] = [];
  try {
    const tokens = await Promise.all(secrets.map((secret) => tokenOf(mortal, secret)));
    const senders = tokens.map((token, index) =>
      openSender({ name: `client${index}`, service: () => mortal, token: async () => token }),
    );
    const players = await sitDown(run, senders, operatorOf(database), (what) => complaints.push(what));
    await playAll(run, mortal, players);
    // Such a removal is seldom; one at least is made in each run.
    await players[0]?.move();
    for (const player of players) await player.verify();
    const code = await mortal.stop();
    if (code !== 0) complaints.push(`the service ended with ${code}`);
    const ledger = senders.flatMap((sender) => sender.ledger);
    complaints.push(...(await complaintsOf(database, ledger)));
    for (const player of players) complaints.push(...(await strangers(database, player)));
    const count = (outcome: string) => ledger.filter((asked) => asked.outcome === outcome).length;
    const counts = { acknowledged: count('done'), refused: count('refused'), unknown: count('unknown') };
    return { complaints, ledger, count: counts };
  } finally {
    await mortal.end();
  }
}

async function sitDown(
  { chance }: Run,
  senders: readonly Sender[],
  operator: Operator,
  complain: (what: string) => void,
): Promise<readonly Player[]> {
  const commons = await settleCommons(senders[0] as Sender);
  const players = await Promise.all(
    senders.map((sender) => openPlayer({ chance, commons, complain, sender, operator })),
  );
  await players[0]?.crowd();
  return players;
}

export interface Secret {
  readonly client_id: string;
  readonly client_secret: string;
}

export async function clientOf(database: TestDatabase): Promise<Secret> {
  const made = await runClientCreate(database, FULL_SCOPE, '--json');
  if (made.code !== 0) throw new Error(made.stderr);
  return JSON.parse(made.stdout) as Secret;
}

export async function tokenOf(
  { url }: Pick<Mortal, 'url'>,
  { client_id, client_secret }: Secret,
): Promise<string> {
  const body = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret });
  const answer = await fetch(`${url}/oauth/access_token`, { method: 'POST', body });
  return ((await answer.json()) as { access_token: string }).access_token;
}

/** A realm for all, with a profile and a user in it. */
export async function settleCommons(sender: Sender): Promise<Kept[]> {
  const commons: Kept[] = [];
  let home: ParentIds = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
  for (const [member, kind] of [
    ['realm', REALMS],
    ['oidcProfile', OIDC_PROFILES],
    ['user', USERS],
  ] as const) {
    const write = { method: 'POST', path: kind.collection(home), data: kind.fresh(home) } as const;
    const { id } = bodyOf(await sender.untilAnswered(write)).data;
    commons.push({ kind, home, id, data: {} });
    home = { ...home, [member]: id };
  }
  return commons.map((record) => ({ ...record, home }));
}

/** All play at once until the operations are done; processes die at even distances, a moment of chance later. */
async function playAll({ operations, kills, chance }: Run, mortal: Mortal, players: readonly Player[]) {
  let left = operations;
  const playing = players.map(async (player) => {
    while (left > 0) {
      left -= 1;
      await player.play();
    }
  });
  for (let kill = 1; kill <= kills; kill += 1) {
    const next = operations - (operations / (kills + 1)) * kill;
    while (left > next) await Bun.sleep(1);
    await Bun.sleep(chance() * 5);
    await mortal.kill(chance() < 0.7 ? 'all' : 'one');
  }
  await Promise.all(playing);
}

/** Records of a player's realm that its model does not know, and the other way round. */
export async function strangers(database: TestDatabase, player: Player): Promise<readonly string[]> {
  const realm = player.realm();
  const found = new Set<string>();
  for (const { table, parent } of RESOURCES) {
    const sql = `select ${parent ? 'id' : 'realm_id'} as id from ${table} where realm_id = ?`;
    for (const { id } of await database.query<{ id: string }>(sql, realm)) found.add(id);
  }
  const known = new Set(player.ids());
  return [
    ...[...found].filter((id) => !known.has(id)).map((id) => `${id} is there and nobody made it`),
    ...[...known].filter((id) => !found.has(id)).map((id) => `${id} was acknowledged and is lost`),
  ];
}
