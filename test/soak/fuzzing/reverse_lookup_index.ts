import { isObject, type Json } from '../../support/json_schema.ts';
import type { Draw } from './draw.ts';

/** What answers have said that a later request may repeat: identifiers, ETags, cursors. The oldest are forgotten. */
export interface Finds {
  hear(body: Json | undefined, etag: string | null): void;
  id(draw: Draw): string;
  etag(draw: Draw): string;
  cursor(draw: Draw): string;
}

const KEPT_MAX = 500;
const NIL = '00000000-0000-0000-0000-000000000000';

export function openFinds(): Finds {
  const ids: string[] = [];
  const etags: string[] = [];
  const cursors: string[] = [];
  const keep = (list: string[], value: string) => {
    list.push(value);
    if (list.length > KEPT_MAX) list.shift();
  };
  const one = (draw: Draw, list: readonly string[], other: string) =>
    list.length > 0 ? draw.one(list) : other;

  function hear(value: Json): void {
    if (Array.isArray(value)) for (const each of value) hear(each);
    if (!isObject(value)) return;
    for (const [name, each] of Object.entries(value)) {
      if (typeof each === 'string') note(name, each);
      hear(each);
    }
  }

  function note(name: string, text: string): void {
    if (name === 'id') keep(ids, text);
    const [, cursor] = (name === 'next' && /after(?:%5D|\])=([\w-]+)/i.exec(text)) || [];
    if (cursor !== undefined) keep(cursors, cursor);
  }

  return {
    hear(body, etag) {
      if (body !== undefined) hear(body);
      if (etag !== null) keep(etags, etag);
    },
    id: (draw) => one(draw, ids, NIL),
    etag: (draw) => one(draw, etags, '"0000000000000000-00000000"'),
    cursor: (draw) => one(draw, cursors, ''),
  };
}
