import { createHmac } from 'node:crypto';
import { changeClient } from '../../../src/auth/clients/clients.ts';
import { rotateSigningKey, withdrawSigningKey } from '../../../src/auth/keys/signing.ts';
import { createAuditEntry } from '../../../src/domain/audit_entry.ts';
import { SCOPES } from '../../../src/domain/principal.ts';
import {
  compact,
  encode,
  type Json,
  openForge,
  type Sign,
  signerOf,
  strangersKey,
} from '../../support/forge.ts';
import type { Service } from '../../support/service.ts';

/** The token of a state, for whoever needs these scopes; undefined is none at all. */
export type TokenOf = (scope: string) => Promise<string | undefined>;

/** Whom the token of an operation names that asks for no scope: a session of the console. */
const SESSION = 'console:anna';

/** Whom tokens name, and what signs them. */
interface Means {
  readonly service: Service;
  readonly clientId: string;
  readonly disabledId: string;
  readonly withdrawn: { readonly kid: string; readonly sign: Sign };
  /** The identifier of tokens that were taken back. */
  readonly revoked: string;
}

/** Every state that a token can be in, by its name. Each differs from a right token in this one thing. */
export async function openStates(service: Service): Promise<ReadonlyMap<string, TokenOf>> {
  const means = await prepare(service);
  const forge = await openForge(service);
  const stranger = await strangersKey();
  const now = () => Math.floor(service.clock.now() / 1000);
  const forged =
    (claims: () => Json, header: Json = {}, sign: Sign = forge.sign): TokenOf =>
    (scope) =>
      compact(
        JSON.stringify({ ...forge.header(), ...header }),
        JSON.stringify({ ...forge.claims(scope === '' ? SESSION : means.clientId), scope, ...claims() }),
        sign,
      );
  const same = () => ({});
  const named = (id: string) => () => ({ sub: id, client_id: id });
  const byPublicKey: Sign = async (input) =>
    createHmac('sha256', Buffer.from(String(forge.publicJwk.x), 'base64url'))
      .update(input)
      .digest();
  return new Map<string, TokenOf>([
    ['right', forged(same)],
    ['none', async () => undefined],
    ['a word', async () => 'none'],
    ['three words', async () => 'a.b.c'],
    ['not JSON', () => compact('{', '{', forge.sign)],
    [
      'alg none',
      (scope) =>
        unsigned(
          { ...forge.header(), alg: 'none' },
          { ...forge.claims(scope === '' ? SESSION : means.clientId), scope },
        ),
    ],
    ['alg HS256 by the public key', forged(same, { alg: 'HS256' }, byPublicKey)],
    ['signed by a stranger', forged(same, {}, stranger.sign)],
    ['jwk of a stranger', forged(same, { jwk: stranger.publicJwk }, stranger.sign)],
    ['typ JWT', forged(same, { typ: 'JWT' })],
    ['key unknown', forged(same, { kid: 'nobody' })],
    ['key withdrawn', forged(same, { kid: means.withdrawn.kid }, means.withdrawn.sign)],
    ['issuer unknown', forged(() => ({ iss: 'https://other.example' }))],
    ['other audience', forged(() => ({ aud: 'https://other.example' }))],
    ['expired', forged(() => ({ exp: now() - 31 }))],
    ['not yet valid', forged(() => ({ nbf: now() + 60 }))],
    ['revoked', forged(() => ({ jti: means.revoked }))],
    ['client unknown', forged(named('nobody'))],
    ['client disabled', forged(named(means.disabledId))],
    ['scope unknown', forged(() => ({ scope: 'nonsense' }))],
  ]);
}

/** A client of every right, one that was disabled, a key that was withdrawn, and a token that was revoked. */
async function prepare(service: Service): Promise<Means> {
  const { db, clock } = service;
  const { access } = db.engine;
  const { clientId } = await service.client(SCOPES.join(' '));
  const { clientId: disabledId } = await service.client(SCOPES.join(' '));
  await changeClient(access, disabledId, { disabledAt: clock.now() }, clock);
  const key = await rotateSigningKey(access, db.keyring, clock);
  const withdrawn = { kid: key.kid, sign: await signerOf(key, db) };
  await withdrawSigningKey(key.kid, access, db.keyring, clock);
  const revoked = clock.mintId();
  const auditEntry = createAuditEntry('token.revoked', { object: revoked, detail: {} }, clock);
  await access.revokeToken({ jti: revoked, clientId, expiresAt: clock.now() + 600_000 }, auditEntry);
  clock.advance(1_000);
  return { service, clientId, disabledId, withdrawn, revoked };
}

async function unsigned(header: Json, claims: Json): Promise<string> {
  return `${encode(JSON.stringify(header))}.${encode(JSON.stringify(claims))}.`;
}
