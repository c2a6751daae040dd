import { createHmac } from 'node:crypto';
import { changeClient } from '../../../src/access/clients/clients.ts';
import { rotateSigningKey, withdrawSigningKey } from '../../../src/access/keys/signing.ts';
import { type StoredId, uuidText } from '../../../src/model/id.ts';
import { createAuditEntry } from '../../../src/model/log/audit_entry.ts';
import { IMPLICIT_SCOPES, SCOPES } from '../../../src/model/principal.ts';
import type { Service } from '../../support/service.ts';
import {
  compact,
  encode,
  generateForeignKey,
  type Json,
  openForge,
  type Sign,
  signerOf,
} from '../../support/token_forge.ts';

/** A token in a given state with these scopes; undefined means no token. */
export type TokenOf = (scope: string) => Promise<string | undefined>;

/** The subject of tokens for operations without a scope: a console session. */
const SESSION = 'console:anna';

/** The clients and keys of the tokens. */
interface TokenFixture {
  readonly service: Service;
  readonly clientId: string;
  readonly disabledId: string;
  readonly withdrawn: { readonly kid: string; readonly sign: Sign };
  /** The `jti` of a revoked token, and the `sid` of an ended session. */
  readonly revoked: string;
}

/** Every state of a token, by its name. Each differs from a valid token in one respect. */
export async function openStates(service: Service): Promise<ReadonlyMap<string, TokenOf>> {
  const fixture = await prepare(service);
  const forge = await openForge(service);
  const foreignKey = await generateForeignKey();
  const now = () => Math.floor(service.clock.now() / 1000);
  /** Of a client, or of a session that has not ended. */
  const validClaims = async (scope: string): Promise<Json> =>
    scope === ''
      ? { ...forge.claims(SESSION), scope, sid: await beginSession(service) }
      : { ...forge.claims(fixture.clientId), scope };
  const forged =
    (claims: (scope: string) => Json, header: Json = {}, sign: Sign = forge.sign): TokenOf =>
    async (scope) =>
      compact(
        JSON.stringify({ ...forge.header(), ...header }),
        JSON.stringify({ ...(await validClaims(scope)), ...claims(scope) }),
        sign,
      );
  const unchanged = () => ({});
  const forClient = (id: string) => () => ({ sub: id, client_id: id });
  const byPublicKey: Sign = async (input) =>
    createHmac('sha256', Buffer.from(String(forge.publicJwk.x), 'base64url'))
      .update(input)
      .digest();
  return new Map<string, TokenOf>([
    ['right', forged(unchanged)],
    ['none', async () => undefined],
    ['a word', async () => 'none'],
    ['three words', async () => 'a.b.c'],
    ['not JSON', () => compact('{', '{', forge.sign)],
    ['alg none', async (scope) => unsigned({ ...forge.header(), alg: 'none' }, await validClaims(scope))],
    ['alg HS256 by the public key', forged(unchanged, { alg: 'HS256' }, byPublicKey)],
    ['signed by a foreign key', forged(unchanged, {}, foreignKey.sign)],
    ['jwk of a foreign key', forged(unchanged, { jwk: foreignKey.publicJwk }, foreignKey.sign)],
    ['typ JWT', forged(unchanged, { typ: 'JWT' })],
    ['key unknown', forged(unchanged, { kid: 'nobody' })],
    ['key withdrawn', forged(unchanged, { kid: fixture.withdrawn.kid }, fixture.withdrawn.sign)],
    ['issuer unknown', forged(() => ({ iss: 'https://other.example' }))],
    ['other audience', forged(() => ({ aud: 'https://other.example' }))],
    ['expired', forged(() => ({ exp: now() - 31 }))],
    ['not yet valid', forged(() => ({ nbf: now() + 60 }))],
    ['revoked', forged((scope) => ({ [scope === '' ? 'sid' : 'jti']: fixture.revoked }))],
    ['client unknown', forged(forClient('nobody'))],
    ['client disabled', forged(forClient(fixture.disabledId))],
    ['scope unknown', forged(() => ({ scope: 'nonsense' }))],
    ['grant unknown', forged(() => ({ gty: 'password' }))],
    [
      'by the ID alone',
      byIdAlone(
        fixture,
        forged(() => ({ gty: 'implicit' })),
      ),
    ],
  ]);
}

/** Creates a client with all scopes, a disabled one, a withdrawn key and a revoked token. */
async function prepare(service: Service): Promise<TokenFixture> {
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

/** A token of the client whose ID alone gives all that it can, in all realms that exist. */
function byIdAlone({ service, clientId }: TokenFixture, tokenOf: TokenOf): TokenOf {
  const { db, clock, database } = service;
  const ratePerAddress = { requests: 1_000_000, seconds: 1 };
  return async (scope) => {
    const found = await database.query<{ realm_id: StoredId }>('select realm_id from realm');
    const realms = new Set(found.map(({ realm_id: id }) => uuidText(id)));
    const implicit = { implicitScopes: IMPLICIT_SCOPES, implicitRealms: realms, ratePerAddress };
    await changeClient(db.engine.access, clientId, implicit, clock);
    clock.advance(1_000);
    return tokenOf(scope);
  };
}

/** Begins a session of the console; returns its `sid`. */
async function beginSession({ db, clock }: Service): Promise<string> {
  const [sessionId, now] = [clock.mintId(), clock.now()];
  const times = { begunAt: now, renewedAt: now, endsAt: now + 600_000 };
  const rights = { scopes: new Set(['users:read']), realms: '*', rules: [], person: undefined } as const;
  const auditEntry = createAuditEntry('session.begun', { object: sessionId, detail: {} }, clock);
  const session = { sessionId, actor: SESSION, ...rights, ...times };
  await db.engine.access.insertConsoleSession({ session, auditEntry });
  return sessionId;
}

async function unsigned(header: Json, claims: Json): Promise<string> {
  return `${encode(JSON.stringify(header))}.${encode(JSON.stringify(claims))}.`;
}
