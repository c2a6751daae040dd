export type JsonObject = Readonly<Record<string, unknown>>;

/** All that tells where members begin, in a text that is JSON. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\]:]/g;

/**
 * Reads a JSON object none of whose objects says a member twice, at any depth. Answers undefined for everything else: of
 * a member that stands twice two readers may take two values.
 */
export function parseSoleMembers(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject && !saysTwice(text) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}

function saysTwice(json: string): boolean {
  const above: (Set<string> | undefined)[] = [];
  let said = '';
  for (const [token] of json.matchAll(TOKENS)) {
    if (token === '{') above.push(new Set());
    else if (token === '[') above.push(undefined);
    else if (token === '}' || token === ']') above.pop();
    else if (token !== ':') said = token;
    else {
      // Escapes spell one name in several ways.
      const name: string = JSON.parse(said);
      if (above.at(-1)?.has(name)) return true;
      above.at(-1)?.add(name);
    }
  }
  return false;
}
