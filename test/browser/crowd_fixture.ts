import { expect } from 'bun:test';
import type { Service } from '../support/service.ts';

/**
 * 20,000 users of three realms, as lines for an import: each has a link to Google, every second one a username as well. Every name is
 * one of ten with the same first and family name, and only one of the ten has the e-mail address without a number.
 */

const FIRST =
  `Jane Maria Kim Anna Lena Omar Yusuf Priya Chen Ivan Olga Pedro Lucia Marco Elena Noah Emma Liam Mia Ben
  Sara Tom Eva Max Nina Paul Rosa Hugo Ines Karl Ida Leo Zoe Finn Amy Jon Lea Ulla Vera Igor`.split(/\s+/);
const FAMILY =
  `Doe Quintero Lovelace Turing Hopper Johnson Okafor Nowak Rossi Weber Schmidt Meyer Fischer Kowalski Novak
  Horvat Petrov Ivanova Sato Tanaka Suzuki Wang Zhang Liu Singh Kumar Patel Silva Santos Costa Garcia Lopez Perez Sanchez
  Martin Bernard Dubois Moreau Laurent Jansen Bakker Visser Larsen Hansen Nielsen Virtanen Korhonen Murphy Byrne Walsh`.split(
    /\s+/,
  );
const INITIALS = 'ABCDEFGHIJ';
const NAMES = FIRST.length * FAMILY.length;
export const CROWD = NAMES * INITIALS.length;

const GOOGLE = 'https://accounts.google.com';
const id = (kind: number, number: number) =>
  `0000000${kind}-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;

/** The realms of the crowd. */
export const REALMS = ['Shop', 'Wholesale', 'Staff'].map((name, index) => ({
  name,
  realm: id(1, index),
  google: id(2, index),
  passwords: id(3, index),
}));

export interface Person {
  readonly realm: string;
  readonly id: string;
  readonly name: string;
  readonly email: string;
  /** The ID of the link to Google. */
  readonly link: string;
  readonly subject: string;
  /** Undefined for every second one. */
  readonly username: string | undefined;
}

export function personAt(number: number): Person {
  const first = String(FIRST[number % FIRST.length]);
  const family = String(FAMILY[Math.floor(number / FIRST.length) % FAMILY.length]);
  const initial = INITIALS.charAt(Math.floor(number / NAMES));
  const address = `${first}.${family}`.toLowerCase();
  return {
    ...{ realm: String(REALMS[number % REALMS.length]?.realm), id: id(4, number), link: id(5, number) },
    name: `${first} ${initial}. ${family}`,
    email: `${address}${number < NAMES ? '' : number}@firma.example`,
    subject: String(100_000_000_000_000_000_000n + BigInt(number)),
    username: number % 2 === 0 ? `${address}.${number}` : undefined,
  };
}

function* lines(): Generator<object> {
  const meta = { created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' };
  for (const { name, realm: realm_id, google, passwords } of REALMS) {
    const provider = { discovery_url: `${GOOGLE}/.well-known/openid-configuration`, client_id: 'shop' };
    yield { type: 'authentication-realm', id: realm_id, name, meta };
    yield {
      type: 'oidc-profile',
      ...{ realm_id, id: google, name: 'Google', ...provider, meta: { issuer: GOOGLE, ...meta } },
    };
    yield { type: 'password_profile', realm_id, id: passwords, name: 'Usernames', meta };
  }
  for (let number = 0; number < CROWD; number += 1) {
    const { realm: realm_id, id: user, name, email, link, subject, username } = personAt(number);
    const { google, passwords } = REALMS[number % REALMS.length] as (typeof REALMS)[number];
    const owner = { realm_id, user_authentication_info_id: user };
    yield { type: 'user_authentication_info', realm_id, id: user, name, email, meta };
    yield {
      type: 'user_authentication_oidc_profile_info',
      ...{ ...owner, id: link, subject, issuer: GOOGLE, oidc_profile_id: google, meta },
    };
    if (username === undefined) continue;
    yield {
      type: 'user_authentication_password_profile_info',
      ...{ ...owner, id: id(6, number), username, password_profile_id: passwords, meta },
    };
  }
}

/** Imports the crowd over HTTP. */
export async function importCrowd(service: Service): Promise<void> {
  const text = [...lines()].map((line) => `${JSON.stringify(line)}\n`).join('');
  const token = await service.grant(await service.client('transfer'));
  const answer = await service.post('/admin/v1/import', token, Buffer.from(text));
  expect(answer.status, await answer.clone().text()).toBe(200);
  const { refused } = JSON.parse((await answer.text()).trim()) as { refused: number };
  expect(refused).toBe(0);
}
