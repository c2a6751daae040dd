import { isObject, type Json } from '../../support/json_schema.ts';
import type { Draw } from './draw.ts';

/** Values from responses that later requests reuse: identifiers, ETags, cursors. The oldest are dropped. */
export interface ObservedValues {
  record(body: Json | undefined, etag: string | null): void;
  id(draw: Draw): string;
  etag(draw: Draw): string;
  cursor(draw: Draw): string;
}

const VALUES_MAX = 500;
const NIL = '00000000-0000-0000-0000-000000000000';

export function openObservedValues(): ObservedValues {
  const ids: string[] = [];
  const etags: string[] = [];
  const cursors: string[] = [];
  const add = (list: string[], value: string) => {
    list.push(value);
    if (list.length > VALUES_MAX) list.shift();
  };
  const one = (draw: Draw, list: readonly string[], other: string) =>
    list.length > 0 ? draw.one(list) : other;

  function record(value: Json): void {
    if (Array.isArray(value)) for (const each of value) record(each);
    if (!isObject(value)) return;
    for (const [name, each] of Object.entries(value)) {
      if (typeof each === 'string') recordMember(name, each);
      record(each);
    }
  }

  function recordMember(name: string, text: string): void {
    if (name === 'id') add(ids, text);
    const [, cursor] = (name === 'next' && /after(?:%5D|\])=([\w-]+)/i.exec(text)) || [];
    if (cursor !== undefined) add(cursors, cursor);
  }

  return {
    record(body, etag) {
      if (body !== undefined) record(body);
      if (etag !== null) add(etags, etag);
    },
    id: (draw) => one(draw, ids, NIL),
    etag: (draw) => one(draw, etags, '"0000000000000000-00000000"'),
    cursor: (draw) => one(draw, cursors, ''),
  };
}
