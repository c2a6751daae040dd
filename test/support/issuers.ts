import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '../../src/ops/process/clock.ts';
import { atEnd } from './ending.ts';
import { freshFolder } from './folder.ts';
import { type Service, startService } from './service.ts';
import { compact, type Json, type Sign } from './token_forge.ts';

/** Issuers of the suites: local servers with known keys, so that a test can create any token. */

export const AUDIENCE = 'https://directory.example';
export const DISCOVERY = '/.well-known/openid-configuration';

/** A key pair in the key set of an issuer. */
export interface IssuerKeyPair {
  readonly kid: string;
  readonly algorithm: string;
  readonly publicJwk: Json;
  readonly sign: Sign;
  /** Signs with another digest: another algorithm of the same key (RFC 7518, 3.3). */
  signWith(hash: string): Sign;
}

const RSA = {
  name: 'RSASSA-PKCS1-v1_5',
  modulusLength: 2048,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: 'SHA-256',
};
const EC = { name: 'ECDSA', namedCurve: 'P-256' };

export async function createKeyPair(
  kid: string,
  algorithm: 'RS256' | 'ES256' = 'RS256',
): Promise<IssuerKeyPair> {
  const parameters = algorithm === 'RS256' ? RSA : EC;
  const pair = (await crypto.subtle.generateKey(parameters, true, ['sign', 'verify'])) as CryptoKeyPair;
  const { kty, n, e, crv, x, y } = (await crypto.subtle.exportKey('jwk', pair.publicKey)) as Json;
  const publicJwk = JSON.parse(JSON.stringify({ kty, n, e, crv, x, y, kid, use: 'sig', alg: algorithm }));
  const privateJwk = await crypto.subtle.exportKey('jwk', pair.privateKey);
  const by =
    (hash: string): Sign =>
    async (input) => {
      const { alg: _, ...unbound } = privateJwk;
      const key = await crypto.subtle.importKey('jwk', unbound, { ...parameters, hash }, false, ['sign']);
      return new Uint8Array(await crypto.subtle.sign({ ...parameters, hash }, key, Buffer.from(input)));
    };
  return { kid, algorithm, publicJwk, sign: by('SHA-256'), signWith: by };
}

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** A server whose routes can change at any time, and which counts the requests to each path. */
export interface IssuerServer {
  readonly issuer: string;
  /** Handlers by path; other paths are 404. */
  readonly routes: Map<string, RequestHandler>;
  /** The number of requests by path. */
  readonly requestCounts: Map<string, number>;
  /** Publishes these keys and the discovery document. */
  publish(...keys: readonly Json[]): void;
  stop(): void;
}

export function json(document: unknown): RequestHandler {
  return (_request, response) => {
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(document));
  };
}

export async function startIssuer(): Promise<IssuerServer> {
  const routes = new Map<string, RequestHandler>();
  const requestCounts = new Map<string, number>();
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    requestCounts.set(path, (requestCounts.get(path) ?? 0) + 1);
    const answer = routes.get(path);
    if (answer) answer(request, response);
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  atEnd(stop);
  return {
    issuer,
    routes,
    requestCounts,
    publish(...keys) {
      routes.set(DISCOVERY, json({ issuer, jwks_uri: `${issuer}/keys` }));
      routes.set('/keys', json({ keys }));
    },
    stop,
  };
}

/** An entry of the issuers file, by default with read access for the group `readers`. */
export function issuerEntry({ issuer }: Pick<IssuerServer, 'issuer'>, more: Json = {}): Json {
  const rights = [{ claim: 'groups', value: 'readers', scopes: 'oidc-profile-infos:read', realms: '*' }];
  return { name: 'acme', issuer, audience: AUDIENCE, rights, ...more };
}

/** Writes an issuers file with these entries. */
export function issuersFile(...entries: readonly Json[]): string {
  const path = join(freshFolder(), 'issuers.json');
  writeFileSync(path, JSON.stringify({ issuers: entries }));
  return path;
}

/** Starts a service that trusts these issuers. */
export function startTrustingService(...entries: readonly Json[]): Promise<Service> {
  const flags = { allowPrivate: 'localhost 127.0.0.0/8', badTokenRate: 'off' };
  return startService({ ...flags, issuersFile: issuersFile(...entries) });
}

/** The claims of a token for a member of the group `readers`. */
export function claimsOf({ issuer }: Pick<IssuerServer, 'issuer'>, { clock }: Service): Json {
  const now = Math.floor(clock.now() / 1000);
  return {
    ...{ iss: issuer, aud: AUDIENCE, sub: 'auth0|jane', iat: now, exp: now + 600 },
    ...{ jti: systemClock.mintId(), groups: ['readers'] },
  };
}

/** Signs a token; header members and signature can differ from those of a valid one. */
export function issue(
  pair: IssuerKeyPair,
  claims: Json,
  header: Json = {},
  sign: Sign = pair.sign,
): Promise<string> {
  const valid = { alg: pair.algorithm, typ: 'at+jwt', kid: pair.kid };
  return compact(JSON.stringify({ ...valid, ...header }), JSON.stringify(claims), sign);
}
