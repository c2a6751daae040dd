import { oidcProfileInfo, user } from '../../src/domain/resources.ts';
import type { RecordBody } from '../support/resource_cases.ts';
import { kindOf } from '../support/resource_cases.ts';
import { ISSUER } from '../support/service.ts';

/** What a write asks for, as a model takes it. A created record gets its identifier from the change that tells of it. */
export type Op =
  | { readonly does: 'create user'; readonly name: string; readonly email: string }
  | { readonly does: 'create link'; readonly user: string; readonly subject: string }
  | { readonly does: 'rename'; readonly user: string; readonly name: string }
  | { readonly does: 'remove user'; readonly user: string }
  | { readonly does: 'remove link'; readonly link: string };

/** Somebody who was removed, and all that is known of a person. */
export interface Gone {
  readonly realm: string;
  readonly user: string;
  readonly texts: readonly string[];
  readonly at: number;
}

/** What writers have asked for until now, under their request IDs. */
export interface Told {
  readonly asked: ReadonlyMap<string, Op>;
  /** The request IDs of what was acknowledged, in the order it came back. */
  readonly acknowledged: readonly string[];
  readonly gone: readonly Gone[];
  /** What was answered otherwise than the contract says, in sentences. */
  readonly complaints: readonly string[];
}

export interface WriteLoad extends Told {
  stop(): Promise<void>;
}

/** Where writers write. */
export interface Ground {
  readonly url: string;
  readonly token: string;
  readonly chance: () => number;
  readonly realms: readonly { readonly realm: string; readonly oidcProfile: string }[];
}

const USERS = kindOf(user);
const LINKS = kindOf(oidcProfileInfo);
/** A text that stands nowhere else, not even as a part. */
function word(stem: string): string {
  return `${stem}-${crypto.randomUUID()}`;
}

/** A writer removes its own users when it has more. */
const USERS_KEPT = 12;

interface Known {
  readonly user: string;
  readonly texts: string[];
  readonly links: string[];
}

/** Writers that ask one after the other, as fast as they are answered. Several share a realm; each has its own users. */
export function startWriters(ground: Ground, count: number): WriteLoad {
  const told = {
    asked: new Map<string, Op>(),
    acknowledged: [] as string[],
    gone: [] as Gone[],
    complaints: [] as string[],
  };
  const state = { isStopped: false };
  const writers = Array.from({ length: count }, (_, index) => write(index));

  async function write(index: number): Promise<void> {
    const home = ground.realms[index % ground.realms.length] as Ground['realms'][number];
    const send = openSend({ ground, told, name: `writer${index}` });
    const mine: Known[] = [];
    while (!state.isStopped) await step({ ground, home, send, mine, gone: told.gone });
  }

  return {
    ...told,
    async stop() {
      state.isStopped = true;
      await Promise.all(writers);
    },
  };
}

type Send = (
  op: Op,
  method: 'POST' | 'PUT' | 'DELETE',
  path: string,
  data?: object,
) => Promise<string | undefined>;

interface Telling {
  readonly ground: Ground;
  readonly told: {
    readonly asked: Map<string, Op>;
    readonly acknowledged: string[];
    readonly complaints: string[];
  };
  readonly name: string;
}

/** Sends a write and answers the identifier of the record; undefined where it was not acknowledged. */
function openSend({ ground: { url, token }, told, name }: Telling): Send {
  let count = 0;
  return async (op, method, path, data) => {
    count += 1;
    const id = `${name}-${count}`;
    told.asked.set(id, op);
    const headers = {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'X-Request-Id': id,
    };
    const body = data === undefined ? {} : { body: JSON.stringify({ data }) };
    const answer = await fetch(url + path, { method, headers, ...body });
    const text = await answer.text();
    if (answer.status >= 400) {
      told.complaints.push(`${op.does} was answered with ${answer.status}: ${text}`);
      return undefined;
    }
    told.acknowledged.push(id);
    return text === '' ? '' : (JSON.parse(text) as RecordBody).data.id;
  };
}

interface Step {
  readonly ground: Ground;
  readonly home: Ground['realms'][number];
  readonly send: Send;
  readonly mine: Known[];
  readonly gone: Gone[];
}

function step(at: Step): Promise<void> {
  const { ground, mine } = at;
  const draw = ground.chance();
  const one = mine[Math.floor(ground.chance() * mine.length)];
  if (!one || draw < 0.3)
    return mine.length < USERS_KEPT ? createUser(at) : removeUser(at, mine.shift() as Known);
  if (draw < 0.7) return createLink(at, one);
  return draw < 0.85 ? rename(at, one) : removeLink(at, one);
}

const homeOf = ({ home }: Step, id = '') => ({ ...home, passwordProfile: '', user: id });
const userPath = (at: Step, id: string) => `${USERS.collection(homeOf(at))}/${id}`;

async function createUser(at: Step): Promise<void> {
  const said = { name: word('Name'), email: `${word('mail')}@example.com` };
  const data = { type: user.type, ...said };
  const id = await at.send({ does: 'create user', ...said }, 'POST', USERS.collection(homeOf(at)), data);
  if (id !== undefined) at.mine.push({ user: id, texts: Object.values(said), links: [] });
}

async function createLink(at: Step, one: Known): Promise<void> {
  const subject = word('subject');
  const data = { type: oidcProfileInfo.type, subject, issuer: ISSUER, oidc_profile_id: at.home.oidcProfile };
  const op = { does: 'create link', user: one.user, subject } as const;
  const id = await at.send(op, 'POST', LINKS.collection(homeOf(at, one.user)), data);
  if (id === undefined) return;
  one.texts.push(subject);
  one.links.push(id);
}

async function rename(at: Step, one: Known): Promise<void> {
  const name = word('Renamed');
  const op = { does: 'rename', user: one.user, name } as const;
  await at.send(op, 'PUT', userPath(at, one.user), { type: user.type, name });
  one.texts.push(name);
}

async function removeLink(at: Step, one: Known): Promise<void> {
  const link = one.links.shift();
  if (link === undefined) return;
  await at.send({ does: 'remove link', link }, 'DELETE', `${LINKS.collection(homeOf(at, one.user))}/${link}`);
}

async function removeUser(at: Step, { user: id, texts }: Known): Promise<void> {
  await at.send({ does: 'remove user', user: id }, 'DELETE', userPath(at, id));
  at.gone.push({ realm: at.home.realm, user: id, texts, at: Date.now() });
}
