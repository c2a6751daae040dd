import { LIMITS } from '../../src/model/limits.ts';
import { type Data, type Kind, type ParentIds, uniqueWord } from '../support/resource_cases.ts';
import { ISSUER } from '../support/service.ts';
import type { CommandLine } from './command_line.ts';
import {
  bodyOf,
  type ClientResponse,
  type ModelRecord,
  pathOf,
  type RandomClient,
  stableMembers,
} from './random_client.ts';
import {
  IDENTITIES,
  OIDC_PROFILES,
  openRealmModel,
  PASSWORD_PROFILES,
  REALMS,
  type RealmModel,
  USERNAMES,
  USERS,
} from './realm_model.ts';

/** Writes at random: to a realm of its own, which no other writer touches, and to one that all share. */
export interface RandomWriter {
  /** Runs one operation and checks the response against the model. */
  writeOnce(): Promise<void>;
  /** Imports more users into the own realm than one DELETE of the realm may cascade to. */
  exceedCascadeLimit(): Promise<void>;
  /** Deletes the own realm, by the command where it has too many records, and creates another one. */
  replaceRealm(): Promise<void>;
  /** Reads every record of the own realm and compares it with the model. */
  verify(): Promise<void>;
  realm(): string;
  /** IDs of the records that the own realm must have. */
  ids(): readonly string[];
}

export interface RandomWriterDeps {
  readonly client: RandomClient;
  readonly chance: () => number;
  readonly complain: (what: string) => void;
  /** Records of the shared realm. */
  readonly sharedRecords: ModelRecord[];
  readonly commandLine: CommandLine;
}

interface WriterState extends RandomWriterDeps {
  model: RealmModel;
  /** The ID of the own realm; it changes when the realm is deleted. */
  realm: string;
}

/** Few names, so that writes conflict. */
const NAMES_COUNT = 40;
const NO_PARENTS: ParentIds = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
const STALE = { 'If-Match': '"0000000000000000-AAAAAAAA"' };

export async function openRandomWriter(deps: RandomWriterDeps): Promise<RandomWriter> {
  const state: WriterState = { ...deps, model: openRealmModel(), realm: '' };
  await createOwnRealm(state);
  return {
    writeOnce: () => writeOnce(state),
    exceedCascadeLimit: () => exceedCascadeLimit(state),
    replaceRealm: () => remove(state, ownRealmRecord(state)),
    realm: () => state.realm,
    ids: () => [...state.model.records.keys()],
    async verify() {
      for (const record of state.model.records.values()) await read(state, record);
    },
  };
}

function ownRealmRecord({ model, realm }: WriterState): ModelRecord {
  return model.records.get(realm) as ModelRecord;
}

/** Imports users with the command line. The model takes them as they are read the first time. */
async function exceedCascadeLimit(state: WriterState): Promise<void> {
  const { realm, model, commandLine, client } = state;
  const ids = Array.from({ length: LIMITS.cascadeRecordsMax }, () => crypto.randomUUID());
  const { type } = USERS.resource;
  await commandLine.importRecords(
    ids.map((id) => ({ type, realm_id: realm, id, name: `User ${id}`, email: `${id}@example.com` })),
  );
  for (const id of ids) {
    const record = { kind: USERS, id, home: { ...NO_PARENTS, realm } };
    const answer = await client.get(pathOf(record));
    if (hasStatus(state, 'a read of an imported user', answer, 200)) {
      model.put({ ...record, data: stableMembers(bodyOf(answer)) });
    }
  }
}

async function writeOnce(state: WriterState): Promise<void> {
  const draw = state.chance();
  const record = one(state, [...state.model.records.values()]);
  const realm = state.model.records.get(state.realm);
  if (draw < 0.4 || !record || !realm) return create(state, kindAt(state.chance()));
  if (draw < 0.65) return update(state, record);
  if (draw < 0.8) return record.kind === REALMS ? undefined : remove(state, record);
  if (draw < 0.802) return remove(state, realm);
  return draw < 0.9 ? read(state, record) : writeToSharedRealm(state);
}

/** Few usernames, because each hashes a password. */
function kindAt(draw: number): Kind {
  if (draw < 0.5) return IDENTITIES;
  if (draw < 0.85) return USERS;
  if (draw < 0.93) return OIDC_PROFILES;
  return draw < 0.98 ? PASSWORD_PROFILES : USERNAMES;
}

function one<T>({ chance }: WriterState, of: readonly T[]): T | undefined {
  return of[Math.floor(chance() * of.length)];
}

function hasStatus(
  { complain }: WriterState,
  what: string,
  { status, text }: ClientResponse,
  ...expected: readonly number[]
): boolean {
  const isExpected = expected.includes(status);
  if (!isExpected)
    complain(`${what} was answered with ${status} instead of ${expected.join(' or ')}: ${text}`);
  return isExpected;
}

async function createOwnRealm(state: WriterState): Promise<void> {
  state.model = openRealmModel();
  const write = {
    method: 'POST',
    path: REALMS.collection(NO_PARENTS),
    data: REALMS.fresh(NO_PARENTS),
  } as const;
  state.realm = addToModel(state, REALMS, NO_PARENTS, await state.client.untilAnswered(write)).id;
  for (const kind of [OIDC_PROFILES, PASSWORD_PROFILES, USERS]) await create(state, kind);
}

function addToModel(
  { model }: WriterState,
  kind: Kind,
  home: ParentIds,
  answer: ClientResponse,
): ModelRecord {
  const body = bodyOf(answer);
  const record = { kind, id: body.data.id, home, data: stableMembers(body) };
  model.put(record);
  return record;
}

/** The unique members of a link, which may conflict with those of another. */
function drawName({ chance }: WriterState, kind: Kind): Data {
  const name = Math.floor(chance() * NAMES_COUNT);
  if (kind === IDENTITIES) return { subject: `subject-${name}`, issuer: ISSUER };
  return kind === USERNAMES ? { username: `user-${name}` } : {};
}

async function create(state: WriterState, kind: Kind): Promise<void> {
  const idOf = (parent: Kind) => {
    const candidates = [...state.model.records.values()].filter((record) => record.kind === parent);
    // Now and then a parent or a profile that does not exist.
    return (state.chance() < 0.05 ? undefined : one(state, candidates)?.id) ?? crypto.randomUUID();
  };
  const home = {
    realm: state.realm,
    user: idOf(USERS),
    oidcProfile: idOf(OIDC_PROFILES),
    passwordProfile: idOf(PASSWORD_PROFILES),
  };
  const data = { ...kind.fresh(home), ...drawName(state, kind) };
  const expected = state.model.createStatuses(kind, home, data);
  const answer = await state.client.untilAnswered({ method: 'POST', path: kind.collection(home), data });
  const isCreated =
    hasStatus(state, `a create of a ${kind.name}`, answer, ...expected) && answer.status === 201;
  if (isCreated) addToModel(state, kind, home, answer);
}

async function update(state: WriterState, record: ModelRecord): Promise<void> {
  const { kind } = record;
  // Secrets are never returned.
  const { password, client_secret, ...changes } = { ...kind.changes(), ...drawName(state, kind) };
  const condition = await drawCondition(state, record);
  const expected = condition === STALE ? 412 : state.model.updateStatus(record, changes);
  const after = expected === 200 ? { ...record, data: { ...record.data, ...changes } } : record;
  const data = { type: kind.resource.type, ...changes };
  const answer = await state.client.sendOnce({
    method: 'PUT',
    path: pathOf(record),
    data,
    headers: condition,
  });
  if (!answer) return resolveUnknown(state, record, after);
  if (hasStatus(state, `an update of a ${kind.name}`, answer, expected)) state.model.put(after);
}

async function drawCondition(
  { chance, client }: WriterState,
  record: ModelRecord,
): Promise<Record<string, string>> {
  const draw = chance();
  if (draw < 0.1) return STALE;
  return draw < 0.3 ? { 'If-Match': (await client.get(pathOf(record))).etag } : {};
}

/** The outcome of an update is unknown: the record must be as before or as after it. */
async function resolveUnknown(state: WriterState, before: ModelRecord, after: ModelRecord): Promise<void> {
  const answer = await state.client.get(pathOf(before));
  if (!hasStatus(state, `a read of a ${before.kind.name} after a crash`, answer, 200)) return;
  const found = stableMembers(bodyOf(answer));
  if (Bun.deepEquals(found, after.data)) state.model.put(after);
  else if (!Bun.deepEquals(found, before.data))
    state.complain(`a ${before.kind.name} is neither as before nor as after an update`);
}

async function remove(state: WriterState, record: ModelRecord): Promise<void> {
  const expected = state.model.deleteStatus(record);
  const answer = await state.client.sendOnce({ method: 'DELETE', path: pathOf(record) });
  if (answer && !hasStatus(state, `a removal of a ${record.kind.name}`, answer, expected)) return;
  const exceedsCascadeLimit = expected === 422 && record.kind === REALMS;
  if (exceedsCascadeLimit) await state.commandLine.deleteRealm(record.id);
  const isGone =
    answer && !exceedsCascadeLimit
      ? expected === 204
      : (await state.client.get(pathOf(record))).status === 404;
  if (exceedsCascadeLimit && !isGone) state.complain('a realm exists after its deletion in pages');
  if (!isGone) return;
  state.model.remove(record);
  if (record.kind === REALMS) await createOwnRealm(state);
}

async function read(state: WriterState, record: ModelRecord): Promise<void> {
  const answer = await state.client.get(pathOf(record));
  if (!hasStatus(state, `a read of a ${record.kind.name}`, answer, 200)) return;
  if (!Bun.deepEquals(stableMembers(bodyOf(answer)), record.data))
    state.complain(`a ${record.kind.name} is ${answer.text} instead of ${JSON.stringify(record.data)}`);
}

/** Concurrent writes conflict in any order here, so the model has no part in it; the change log must be consistent. */
async function writeToSharedRealm({ client, chance, sharedRecords }: RandomWriterDeps): Promise<void> {
  const record = sharedRecords[Math.floor(chance() * sharedRecords.length)] as ModelRecord;
  const draw = chance();
  if (draw < 0.4) {
    const data = { type: record.kind.resource.type, name: uniqueWord('name') };
    await client.sendOnce({ method: 'PUT', path: pathOf(record), data });
  } else if (draw < 0.55 && record.kind !== REALMS) {
    await client.sendOnce({ method: 'DELETE', path: pathOf(record) });
  } else {
    const kind = draw < 0.8 ? IDENTITIES : USERS;
    const users = sharedRecords.filter((each) => each.kind === USERS);
    const parent = users[Math.floor(chance() * users.length)];
    const home = { ...record.home, user: parent?.id ?? record.home.user };
    const write = { method: 'POST', path: kind.collection(home), data: kind.fresh(home) } as const;
    const answer = await client.untilAnswered(write);
    if (answer.status === 201) sharedRecords.push({ kind, home, id: bodyOf(answer).data.id, data: {} });
  }
}
