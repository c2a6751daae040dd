import { oidcProfileInfo, user } from '../../src/model/resources.ts';
import type { RecordBody } from '../support/resource_cases.ts';
import { kindOf } from '../support/resource_cases.ts';
import { ISSUER } from '../support/service.ts';

/** A write as the model applies it. The ID of a created record comes from its change. */
export type WriteOperation =
  | { readonly kind: 'create user'; readonly name: string; readonly email: string }
  | { readonly kind: 'create link'; readonly user: string; readonly subject: string }
  | { readonly kind: 'rename'; readonly user: string; readonly name: string }
  | { readonly kind: 'remove user'; readonly user: string }
  | { readonly kind: 'remove link'; readonly link: string };

/** A deleted user, with all texts that it ever had. */
export interface ErasedUser {
  readonly realm: string;
  readonly user: string;
  readonly texts: readonly string[];
  readonly at: number;
}

/** The writes so far, by request ID. */
export interface LoadRecord {
  readonly operations: ReadonlyMap<string, WriteOperation>;
  /** Request IDs of acknowledged writes, in order of acknowledgement. */
  readonly acknowledged: readonly string[];
  readonly erased: readonly ErasedUser[];
  /** Responses that violate the contract, in sentences. */
  readonly complaints: readonly string[];
}

export interface WriteLoad extends LoadRecord {
  stop(): Promise<void>;
}

export interface LoadFixture {
  readonly url: string;
  readonly token: string;
  readonly chance: () => number;
  readonly realms: readonly { readonly realm: string; readonly oidcProfile: string }[];
}

const USERS = kindOf(user);
const LINKS = kindOf(oidcProfileInfo);
/** A unique text that is not part of any other. */
function word(stem: string): string {
  return `${stem}-${crypto.randomUUID()}`;
}

/** A writer deletes its own users above this number. */
const USERS_PER_WRITER_MAX = 12;

interface OwnUser {
  readonly user: string;
  readonly texts: string[];
  readonly links: string[];
}

/** Writers that send one request after the other without pause. Several share a realm; each has its own users. */
export function startWriters(fixture: LoadFixture, count: number): WriteLoad {
  const record = {
    operations: new Map<string, WriteOperation>(),
    acknowledged: [] as string[],
    erased: [] as ErasedUser[],
    complaints: [] as string[],
  };
  const state = { isStopped: false };
  const writers = Array.from({ length: count }, (_, index) => write(index));

  async function write(index: number): Promise<void> {
    const home = fixture.realms[index % fixture.realms.length] as LoadFixture['realms'][number];
    const send = openSend({ fixture, record, name: `writer${index}` });
    const ownUsers: OwnUser[] = [];
    while (!state.isStopped) await step({ fixture, home, send, ownUsers, erased: record.erased });
  }

  return {
    ...record,
    async stop() {
      state.isStopped = true;
      await Promise.all(writers);
    },
  };
}

type Send = (
  op: WriteOperation,
  method: 'POST' | 'PUT' | 'DELETE',
  path: string,
  data?: object,
) => Promise<string | undefined>;

interface SendDeps {
  readonly fixture: LoadFixture;
  readonly record: {
    readonly operations: Map<string, WriteOperation>;
    readonly acknowledged: string[];
    readonly complaints: string[];
  };
  readonly name: string;
}

/** Sends a write and returns the ID of the record; undefined when it was not acknowledged. */
function openSend({ fixture: { url, token }, record, name }: SendDeps): Send {
  let count = 0;
  return async (op, method, path, data) => {
    count += 1;
    const id = `${name}-${count}`;
    record.operations.set(id, op);
    const headers = {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'X-Request-Id': id,
    };
    const body = data === undefined ? {} : { body: JSON.stringify({ data }) };
    const answer = await fetch(url + path, { method, headers, ...body });
    const text = await answer.text();
    if (answer.status >= 400) {
      record.complaints.push(`${op.kind} was answered with ${answer.status}: ${text}`);
      return undefined;
    }
    record.acknowledged.push(id);
    return text === '' ? '' : (JSON.parse(text) as RecordBody).data.id;
  };
}

interface Step {
  readonly fixture: LoadFixture;
  readonly home: LoadFixture['realms'][number];
  readonly send: Send;
  readonly ownUsers: OwnUser[];
  readonly erased: ErasedUser[];
}

function step(at: Step): Promise<void> {
  const { fixture, ownUsers } = at;
  const draw = fixture.chance();
  const one = ownUsers[Math.floor(fixture.chance() * ownUsers.length)];
  if (!one || draw < 0.3)
    return ownUsers.length < USERS_PER_WRITER_MAX
      ? createUser(at)
      : removeUser(at, ownUsers.shift() as OwnUser);
  if (draw < 0.7) return createLink(at, one);
  return draw < 0.85 ? rename(at, one) : removeLink(at, one);
}

const homeOf = ({ home }: Step, id = '') => ({ ...home, passwordProfile: '', user: id });
const userPath = (at: Step, id: string) => `${USERS.collection(homeOf(at))}/${id}`;

async function createUser(at: Step): Promise<void> {
  const members = { name: word('Name'), email: `${word('mail')}@example.com` };
  const data = { type: user.type, ...members };
  const id = await at.send({ kind: 'create user', ...members }, 'POST', USERS.collection(homeOf(at)), data);
  if (id !== undefined) at.ownUsers.push({ user: id, texts: Object.values(members), links: [] });
}

async function createLink(at: Step, one: OwnUser): Promise<void> {
  const subject = word('subject');
  const data = { type: oidcProfileInfo.type, subject, issuer: ISSUER, oidc_profile_id: at.home.oidcProfile };
  const op = { kind: 'create link', user: one.user, subject } as const;
  const id = await at.send(op, 'POST', LINKS.collection(homeOf(at, one.user)), data);
  if (id === undefined) return;
  one.texts.push(subject);
  one.links.push(id);
}

async function rename(at: Step, one: OwnUser): Promise<void> {
  const name = word('Renamed');
  const op = { kind: 'rename', user: one.user, name } as const;
  await at.send(op, 'PUT', userPath(at, one.user), { type: user.type, name });
  one.texts.push(name);
}

async function removeLink(at: Step, one: OwnUser): Promise<void> {
  const link = one.links.shift();
  if (link === undefined) return;
  await at.send({ kind: 'remove link', link }, 'DELETE', `${LINKS.collection(homeOf(at, one.user))}/${link}`);
}

async function removeUser(at: Step, { user: id, texts }: OwnUser): Promise<void> {
  await at.send({ kind: 'remove user', user: id }, 'DELETE', userPath(at, id));
  at.erased.push({ realm: at.home.realm, user: id, texts, at: Date.now() });
}
