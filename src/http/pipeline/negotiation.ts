import type { Reply } from '../server/reply.ts';
import type { Call } from './call.ts';
import { matchesEtag } from './present.ts';

/** The replies with one content, of which the request decides; `packed` is undefined if there is no compressed form. */
export type Representations = ReturnType<typeof representationsOf>;

type Bytes = Uint8Array<ArrayBuffer>;

/** Each representation has an ETag of its own (RFC 9110, 8.8.3.3). */
export function representationsOf(
  headers: Readonly<Record<string, string>>,
  plain: Bytes,
  packed: Bytes | undefined,
) {
  const reply = (body: Bytes, encoding: Readonly<Record<string, string>>): Reply => {
    const ETag = `"${Bun.SHA256.hash(body, 'base64url')}"`;
    const all = { ...headers, ...encoding, Vary: 'Accept-Encoding', ETag };
    return Object.freeze({ status: 200, headers: Object.freeze(all), body });
  };
  return { plain: reply(plain, {}), packed: packed && reply(packed, { 'Content-Encoding': 'gzip' }) };
}

/** The representation that the caller accepts, or 304 if the caller has it. */
export function negotiate({ request }: Call, { plain, packed }: Representations): Reply {
  const reply = packed && acceptsGzip(request.headers.get('accept-encoding')) ? packed : plain;
  const named = request.headers.get('if-none-match');
  const { ETag = '' } = reply.headers;
  if (named === null || !matchesEtag(named, ETag)) return reply;
  const { 'Content-Type': _, 'Content-Encoding': __, ...headers } = reply.headers;
  return { status: 304, headers, body: null };
}

/** Whether gzip is accepted (RFC 9110, 12.5.3): it or `*` is listed, with a weight above 0. */
export function acceptsGzip(accepted: string | null): boolean {
  const weights = weightsIn(accepted);
  return (weights.get('gzip') ?? weights.get('*') ?? 0) > 0;
}

/** Whether a media type is listed itself, with a weight above 0 (RFC 9110, 12.5.1). */
export function asksFor(type: string, { headers }: Request): boolean {
  return (weightsIn(headers.get('accept')).get(type) ?? 0) > 0;
}

/** The values of a list and their weights (RFC 9110, 12.4.2). */
function weightsIn(list: string | null): ReadonlyMap<string, number> {
  return new Map(
    (list ?? '').split(',').map((each) => {
      const [name = '', ...parameters] = each.split(';').map((part) => part.trim().toLowerCase());
      const weight = parameters.find((part) => part.startsWith('q='))?.slice(2);
      return [name, weight === undefined ? 1 : Number(weight)];
    }),
  );
}
