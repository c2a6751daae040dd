import { z } from 'zod';
import { LIMITS } from './limits.ts';
import { text } from './text/text.ts';

const optionalText = text(LIMITS.providerTextCharactersMax).nullable();
const listEntry = text(LIMITS.providerEntryCharactersMax);
const optionalList = z.array(listEntry).max(LIMITS.providerListEntriesMax).nullable();

/**
 * The returned part of a discovery document (OpenID Connect Discovery 1.0, 3), as text and otherwise unchecked. A member
 * that is missing or has another type is null.
 */
export const providerDocument = z.strictObject({
  issuer: optionalText,
  authorization_endpoint: optionalText,
  token_endpoint: optionalText,
  jwks_uri: optionalText,
  scopes_supported: optionalList,
  response_types_supported: optionalList,
});

export type ProviderDocument = z.output<typeof providerDocument>;

/**
 * `not_requested`: because of the settings, or because the URL belongs to no issuer. `no_document`: no JSON object was
 * received. `tookMs`: milliseconds until the last byte.
 */
export type ProviderAnswer =
  | { readonly kind: 'not_requested' | 'no_document' }
  | { readonly kind: 'document'; readonly document: ProviderDocument; readonly tookMs: number };

/** Picks the known and valid members of an untrusted document. */
export function parseProviderDocument(document: Readonly<Record<string, unknown>>): ProviderDocument {
  const read = Object.entries(providerDocument.shape).map(([name, schema]) => {
    const value = Object.hasOwn(document, name) ? document[name] : null;
    return [name, schema.safeParse(Array.isArray(value) ? validEntries(value) : value).data ?? null];
  });
  return Object.fromEntries(read) as ProviderDocument;
}

function validEntries(list: readonly unknown[]): readonly string[] {
  const known = list.filter((each): each is string => listEntry.safeParse(each).success);
  return known.slice(0, LIMITS.providerListEntriesMax);
}
