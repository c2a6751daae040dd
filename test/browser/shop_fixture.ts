import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../src/model/resources.ts';
import { createRecord, kindOf, PASSWORD, type ParentIds } from '../support/resource_cases.ts';
import type { Service } from '../support/service.ts';
import { HOSTILE_TEXTS, WRITE_SCOPE } from './console_session.ts';

/** A realm of a shop: several profiles, users with and without links, and hostile texts. */
export interface Shop extends ParentIds {
  readonly otherProfile: string;
  /** Links of the user. */
  readonly subjectLink: string;
  readonly usernameLink: string;
  /** A user without links. */
  readonly unlinked: string;
  /** A user whose texts are all hostile. */
  readonly strange: string;
  readonly client: string;
  /** Disabled, so it receives nothing. */
  readonly webhook: string;
}

const NAMES = ['Alan Turing', 'Grace Hopper', 'Katherine Johnson', 'Анна Каренина', '王小明'];

/** Creates the shop over HTTP, on a service that runs with --offline. */
export async function createShop(service: Service): Promise<Shop> {
  const token = await service.token(WRITE_SCOPE);
  const write = async (
    resource: Parameters<typeof kindOf>[0],
    home: ParentIds,
    data: Readonly<Record<string, unknown>>,
  ) => (await createRecord(service, token, { kind: kindOf(resource), home, data })).id;
  const nowhere = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
  const own = { ...nowhere, realm: await write(realm, nowhere, { name: 'Buyer Organization' }) };
  const login = (name: string, host: string) =>
    write(oidcProfile, own, { name, discovery_url: `https://${host}/.well-known/openid-configuration` });
  const home = {
    ...own,
    oidcProfile: await login('Company login', 'login.example.com'),
    passwordProfile: await write(passwordProfile, own, { name: 'Passwords' }),
  };
  const other = await login('Partner portal', 'partners.example.org');
  const jane = await write(user, home, {
    name: 'Jane Doe',
    email: 'jane.doe@example.com',
    given_name: 'Jane',
  });
  const janes = { ...home, user: jane };
  const at = (issuer: string, subject: string, id: string) => ({ issuer, subject, oidc_profile_id: id });
  const subjectLink = await write(
    oidcProfileInfo,
    janes,
    at('https://login.example.com', 'auth0|5f7c8ec7c33c6c004bbafe82', home.oidcProfile),
  );
  await write(oidcProfileInfo, janes, at('https://login.example.com', 'jdoe@corp.example', home.oidcProfile));
  await write(oidcProfileInfo, janes, at('https://partners.example.org', '00u1a2b3c4d5e6f7', other));
  const usernameLink = await write(passwordProfileInfo, janes, { username: 'jane.doe', password: PASSWORD });
  const unlinked = await write(user, home, { name: 'Ada Lovelace', email: 'ada@example.com' });
  for (const [index, name] of NAMES.entries()) {
    await write(user, home, { name, email: `person${index}@example.com` });
  }
  const strange = await write(user, home, {
    name: HOSTILE_TEXTS.override,
    email: 'strange@example.com',
    given_name: HOSTILE_TEXTS.script,
    middle_name: HOSTILE_TEXTS.alike,
    family_name: HOSTILE_TEXTS.emoji,
  });
  const theirs = { ...home, user: strange };
  for (const [index, subject] of Object.values(HOSTILE_TEXTS).entries()) {
    const id = index % 2 === 0 ? home.oidcProfile : other;
    await write(oidcProfileInfo, theirs, at(`https://login.example.com/${index}`, subject, id));
  }
  await write(passwordProfileInfo, theirs, { username: HOSTILE_TEXTS.image, password: PASSWORD });
  const client = await createManaged(service, 'clients', {
    ...{ name: 'Checkout', scopes: ['users:read', 'profile-infos:read'], realms: [home.realm] },
  });
  const webhook = await createManaged(service, 'webhooks', {
    ...{ name: 'Search index', url: 'https://hooks.example.com/authrealm', realms: '*', events: '*' },
  });
  await createManaged(service, `webhooks/${webhook}/disable`, {});
  const users = { user: jane, unlinked, strange };
  return { ...home, ...users, otherProfile: other, subjectLink, usernameLink, client, webhook };
}

/** Returns the ID of the created record. */
async function createManaged(service: Service, path: string, data: object): Promise<string> {
  const response = await service.post(`/admin/v1/${path}`, await service.token('admin'), { data });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return ((await response.json()) as { data: { id: string } }).data.id;
}
