import { z } from 'zod';
import { LIMITS } from './limits.ts';
import { text } from './text/text.ts';

const said = text(LIMITS.providerTextCharactersMax).nullable();
const word = text(LIMITS.providerWordCharactersMax);
const words = z.array(word).max(LIMITS.providerWordsMax).nullable();

/**
 * What is told of a discovery document (OpenID Connect Discovery 1.0, 3), as text and no further judged. Null is what it
 * does not say, or says in another form.
 */
export const providerDocument = z.strictObject({
  issuer: said,
  authorization_endpoint: said,
  token_endpoint: said,
  jwks_uri: said,
  scopes_supported: words,
  response_types_supported: words,
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
export function providerDocumentIn(written: Readonly<Record<string, unknown>>): ProviderDocument {
  const read = Object.entries(providerDocument.shape).map(([name, schema]) => {
    const value = Object.hasOwn(written, name) ? written[name] : null;
    return [name, schema.safeParse(Array.isArray(value) ? wordsIn(value) : value).data ?? null];
  });
  return Object.fromEntries(read) as ProviderDocument;
}

function wordsIn(list: readonly unknown[]): readonly string[] {
  const known = list.filter((each): each is string => word.safeParse(each).success);
  return known.slice(0, LIMITS.providerWordsMax);
}
