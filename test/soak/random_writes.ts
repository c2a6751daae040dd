import { LIMITS } from '../../src/domain/limits.ts';
import { type Data, type Kind, type ParentIds, uniqueWord } from '../support/resource_cases.ts';
import { ISSUER } from '../support/service.ts';
import type { Operator } from './operator.ts';
import { type Answered, bodyOf, type Kept, pathOf, type Sender, saidBy } from './random_client.ts';
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

/** Somebody who writes at random: to a realm of its own, which nobody else touches, and to one that all share. */
export interface Player {
  /** One operation. Everything that is answered is held against the model. */
  play(): Promise<void>;
  /** Fills the own realm past what a removal takes along. */
  crowd(): Promise<void>;
  /** Leaves the own realm for another one: it is removed, by the operator where it takes too much along. */
  move(): Promise<void>;
  /** Holds all that the own realm should have against what it has. */
  verify(): Promise<void>;
  realm(): string;
  /** The identifiers that should be in the own realm. */
  ids(): readonly string[];
}

export interface Table {
  readonly sender: Sender;
  readonly chance: () => number;
  readonly complain: (what: string) => void;
  /** Records of the shared realm, whoever made them. */
  readonly commons: Kept[];
  readonly operator: Operator;
}

/** A player's place at the table. */
interface Seat extends Table {
  model: RealmModel;
  /** The own realm; another one once it was removed. */
  realm: string;
}

/** So few names that writes meet each other. */
const NAMES = 40;
const NOWHERE: ParentIds = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
const STALE = { 'If-Match': '"0000000000000000-AAAAAAAA"' };

export async function openPlayer(table: Table): Promise<Player> {
  const seat: Seat = { ...table, model: openRealmModel(), realm: '' };
  await settleDown(seat);
  return {
    play: () => play(seat),
    crowd: () => crowd(seat),
    move: () => remove(seat, ownRealm(seat)),
    realm: () => seat.realm,
    ids: () => [...seat.model.records.keys()],
    async verify() {
      for (const record of seat.model.records.values()) await read(seat, record);
    },
  };
}

function ownRealm({ model, realm }: Seat): Kept {
  return model.records.get(realm) as Kept;
}

/** Users that nobody asked the service for. What they say is read once; later it must be the same. */
async function crowd(seat: Seat): Promise<void> {
  const { realm, model, operator, sender } = seat;
  const ids = Array.from({ length: LIMITS.cascadeRecordsMax }, () => crypto.randomUUID());
  const { type } = USERS.resource;
  await operator.bring(
    ids.map((id) => ({ type, realm_id: realm, id, name: `User ${id}`, email: `${id}@example.com` })),
  );
  for (const id of ids) {
    const record = { kind: USERS, id, home: { ...NOWHERE, realm } };
    const answer = await sender.get(pathOf(record));
    if (isAnswered(seat, 'a read of a user that was imported', answer, 200)) {
      model.put({ ...record, data: saidBy(bodyOf(answer)) });
    }
  }
}

async function play(seat: Seat): Promise<void> {
  const draw = seat.chance();
  const record = one(seat, [...seat.model.records.values()]);
  const realm = seat.model.records.get(seat.realm);
  if (draw < 0.4 || !record || !realm) return create(seat, drawnKind(seat.chance()));
  if (draw < 0.65) return update(seat, record);
  if (draw < 0.8) return record.kind === REALMS ? undefined : remove(seat, record);
  if (draw < 0.802) return remove(seat, realm);
  return draw < 0.9 ? read(seat, record) : playInCommons(seat);
}

/** Few usernames: each costs a hash. */
function drawnKind(draw: number): Kind {
  if (draw < 0.5) return IDENTITIES;
  if (draw < 0.85) return USERS;
  if (draw < 0.93) return OIDC_PROFILES;
  return draw < 0.98 ? PASSWORD_PROFILES : USERNAMES;
}

function one<T>({ chance }: Seat, of: readonly T[]): T | undefined {
  return of[Math.floor(chance() * of.length)];
}

function isAnswered(
  { complain }: Seat,
  what: string,
  { status, text }: Answered,
  ...expected: readonly number[]
): boolean {
  const isExpected = expected.includes(status);
  if (!isExpected)
    complain(`${what} was answered with ${status} instead of ${expected.join(' or ')}: ${text}`);
  return isExpected;
}

async function settleDown(seat: Seat): Promise<void> {
  seat.model = openRealmModel();
  const write = { method: 'POST', path: REALMS.collection(NOWHERE), data: REALMS.fresh(NOWHERE) } as const;
  seat.realm = keep(seat, REALMS, NOWHERE, await seat.sender.untilAnswered(write)).id;
  for (const kind of [OIDC_PROFILES, PASSWORD_PROFILES, USERS]) await create(seat, kind);
}

function keep({ model }: Seat, kind: Kind, home: ParentIds, answer: Answered): Kept {
  const body = bodyOf(answer);
  const record = { kind, id: body.data.id, home, data: saidBy(body) };
  model.put(record);
  return record;
}

/** What of a link others may have as well. */
function drawnName({ chance }: Seat, kind: Kind): Data {
  const name = Math.floor(chance() * NAMES);
  if (kind === IDENTITIES) return { subject: `subject-${name}`, issuer: ISSUER };
  return kind === USERNAMES ? { username: `user-${name}` } : {};
}

async function create(seat: Seat, kind: Kind): Promise<void> {
  const idOf = (parent: Kind) => {
    const kept = [...seat.model.records.values()].filter((record) => record.kind === parent);
    // Now and then a parent or a profile that is not there.
    return (seat.chance() < 0.05 ? undefined : one(seat, kept)?.id) ?? crypto.randomUUID();
  };
  const home = {
    realm: seat.realm,
    user: idOf(USERS),
    oidcProfile: idOf(OIDC_PROFILES),
    passwordProfile: idOf(PASSWORD_PROFILES),
  };
  const data = { ...kind.fresh(home), ...drawnName(seat, kind) };
  const expected = seat.model.ofCreate(kind, home, data);
  const answer = await seat.sender.untilAnswered({ method: 'POST', path: kind.collection(home), data });
  seat.model.remember();
  const isKept = isAnswered(seat, `a create of a ${kind.name}`, answer, ...expected) && answer.status === 201;
  if (isKept) keep(seat, kind, home, answer);
}

async function update(seat: Seat, record: Kept): Promise<void> {
  const { kind } = record;
  // Nothing shows what these became.
  const { password, client_secret, ...changes } = { ...kind.changes(), ...drawnName(seat, kind) };
  const condition = await drawnCondition(seat, record);
  const expected = condition === STALE ? 412 : seat.model.ofUpdate(record, changes);
  const after = expected === 200 ? { ...record, data: { ...record.data, ...changes } } : record;
  const data = { type: kind.resource.type, ...changes };
  const answer = await seat.sender.once({ method: 'PUT', path: pathOf(record), data, headers: condition });
  if (!answer) return adopt(seat, record, after);
  if (isAnswered(seat, `an update of a ${kind.name}`, answer, expected)) seat.model.put(after);
}

async function drawnCondition({ chance, sender }: Seat, record: Kept): Promise<Record<string, string>> {
  const draw = chance();
  if (draw < 0.1) return STALE;
  return draw < 0.3 ? { 'If-Match': (await sender.get(pathOf(record))).etag } : {};
}

/** Nobody knows whether a write landed: the record is what it was, or what it should have become. */
async function adopt(seat: Seat, before: Kept, after: Kept): Promise<void> {
  const answer = await seat.sender.get(pathOf(before));
  if (!isAnswered(seat, `a read of a ${before.kind.name} after a crash`, answer, 200)) return;
  const found = saidBy(bodyOf(answer));
  if (Bun.deepEquals(found, after.data)) seat.model.put(after);
  else if (!Bun.deepEquals(found, before.data))
    seat.complain(`a ${before.kind.name} is neither before nor after`);
}

async function remove(seat: Seat, record: Kept): Promise<void> {
  const allowed = seat.model.ofRemoval(record);
  const answer = await seat.sender.once({ method: 'DELETE', path: pathOf(record) });
  const expected = allowed.find((status) => status === answer?.status) ?? allowed.at(-1) ?? 204;
  if (answer && !isAnswered(seat, `a removal of a ${record.kind.name}`, answer, expected)) return;
  const isCrowded = expected === 422 && record.kind === REALMS;
  if (isCrowded) await seat.operator.purgeRealm(record.id);
  const isGone =
    answer && !isCrowded ? expected === 204 : (await seat.sender.get(pathOf(record))).status === 404;
  if (isCrowded && !isGone) seat.complain('a realm is there after its purge');
  if (!isGone) return;
  seat.model.remove(record);
  if (record.kind === REALMS) await settleDown(seat);
}

async function read(seat: Seat, record: Kept): Promise<void> {
  const answer = await seat.sender.get(pathOf(record));
  if (!isAnswered(seat, `a read of a ${record.kind.name}`, answer, 200)) return;
  if (!Bun.deepEquals(saidBy(bodyOf(answer)), record.data))
    seat.complain(`a ${record.kind.name} says ${answer.text} instead of ${JSON.stringify(record.data)}`);
}

/** Where everybody writes there is no saying who wins; the changes must tell all the same. */
async function playInCommons({ sender, chance, commons }: Table): Promise<void> {
  const record = commons[Math.floor(chance() * commons.length)] as Kept;
  const draw = chance();
  if (draw < 0.4) {
    const data = { type: record.kind.resource.type, name: uniqueWord('name') };
    await sender.once({ method: 'PUT', path: pathOf(record), data });
  } else if (draw < 0.55 && record.kind !== REALMS) {
    await sender.once({ method: 'DELETE', path: pathOf(record) });
  } else {
    const kind = draw < 0.8 ? IDENTITIES : USERS;
    const users = commons.filter((each) => each.kind === USERS);
    const parent = users[Math.floor(chance() * users.length)];
    const home = { ...record.home, user: parent?.id ?? record.home.user };
    const write = { method: 'POST', path: kind.collection(home), data: kind.fresh(home) } as const;
    const answer = await sender.untilAnswered(write);
    if (answer.status === 201) commons.push({ kind, home, id: bodyOf(answer).data.id, data: {} });
  }
}
