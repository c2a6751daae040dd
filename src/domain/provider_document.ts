import { z } from 'zod';
import { LIMITS } from './limits.ts';
import { text } from './text/text.ts';

const optionalText = text(LIMITS.providerTextCharactersMax).nullable();
const listEntry = text(LIMITS.providerEntryCharactersMax);
const optionalList = z.array(listEntry).max(LIMITS.providerListEntriesMax).nullable();

/**
 * What is told of a discovery document (OpenID Connect Discovery 1.0, 3), as text and no further judged. Null is what it
 * does not say, or says in another form.
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
 * `unasked`: by the settings, or because no issuer leads to the URL. `silent`: no JSON object came, whatever the reason.
 * `tookMs`: until the last byte had come, in whole milliseconds.
 */
export type ProviderAnswer =
  | { readonly kind: 'unasked' | 'silent' }
  | { readonly kind: 'document'; readonly document: ProviderDocument; readonly tookMs: number };

/** Takes the known members of a document that a stranger wrote, as far as they are what they should be. */
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
