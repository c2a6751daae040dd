import { attempt } from '../../model/attempt.ts';
import { isJsonObject, type JsonObject } from '../../model/text/json_object.ts';

/** The tokens of JSON text that delimit object keys. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\]:]/g;

/**
 * Parses a JSON object without duplicate keys at any depth; undefined for everything else. Parsers differ in
 * which of two duplicate values they use (RFC 8259, 4).
 */
export function parseJsonWithUniqueKeys(text: string): JsonObject | undefined {
  const value = attempt((): unknown => JSON.parse(text));
  return isJsonObject(value) && !hasDuplicateKey(text) ? value : undefined;
}

function hasDuplicateKey(json: string): boolean {
  const above: (Set<string> | undefined)[] = [];
  let lastString = '';
  for (const [token] of json.matchAll(TOKENS)) {
    if (token === '{') above.push(new Set());
    else if (token === '[') above.push(undefined);
    else if (token === '}' || token === ']') above.pop();
    else if (token !== ':') lastString = token;
    else {
      // The same key may be written with different escapes.
      const name: string = JSON.parse(lastString);
      if (above.at(-1)?.has(name)) return true;
      above.at(-1)?.add(name);
    }
  }
  return false;
}
