export type JsonObject = Readonly<Record<string, unknown>>;

/** All that tells where members begin, in a text that is JSON. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\]:]/g;

/**
 * Reads a JSON object none of whose objects says a member twice, at any depth. Answers undefined for everything else: of
 * a member that stands twice two readers may take two values.
 */
export function parseJsonWithUniqueKeys(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject && !hasDuplicateKey(text) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
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
      // Escapes spell one name in several ways.
      const name: string = JSON.parse(lastString);
      if (above.at(-1)?.has(name)) return true;
      above.at(-1)?.add(name);
    }
  }
  return false;
}
