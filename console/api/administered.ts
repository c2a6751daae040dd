import { ADMIN } from './administration.ts';
import { ask, ifMatch } from './caller.ts';
import type { Tagged } from './records.ts';

/** What has a secret, and can be disabled: clients and webhook targets are kept alike. */
export interface Administered {
  readonly id: string;
  readonly name: string;
  readonly is_disabled: boolean;
  readonly previous_secret_expires_at: string | null;
  readonly meta: { readonly created_at: string; readonly updated_at: string };
}

/** With its secret: known to the answer that made it, and to nobody afterwards. */
export interface Issued extends Administered {
  readonly secret: string;
}

/** The paths of one kind of it. `Said` is what is said about one. */
export interface Collection<Said, Created = Said> {
  readonly read: (id: string, signal?: AbortSignal) => Promise<Tagged<Administered & Said>>;
  readonly create: (said: Created) => Promise<Issued>;
  /** Changes what is said, on the one that the ETag names. Throws Problem `stale` where it is another one by now. */
  readonly update: (id: string, said: Partial<Said>, etag: string | undefined) => Promise<void>;
  readonly remove: (id: string, etag: string | undefined) => Promise<void>;
  readonly turn: (id: string, act: 'disable' | 'enable') => Promise<void>;
  /** Gives it a new secret; the one it has holds for so many seconds more. */
  readonly rotate: (id: string, overlapSeconds: number) => Promise<Issued>;
}

/** The path of one, or of something that is done with it. */
export function administeredPath(collection: string, id: string, act?: string): string {
  return ['admin/v1', collection, encodeURIComponent(id), ...(act === undefined ? [] : [act])].join('/');
}

/** `secret` is the member of an answer that holds it. */
export function collectionOf<Said, Created = Said>(
  collection: string,
  secret: string,
): Collection<Said, Created> {
  const pathOf = (id: string, act?: string) => administeredPath(collection, id, act);
  // `Idempotency-Key` is not read here: a remembered answer would hold the secret.
  const issue = async (path: string, data: unknown): Promise<Issued> => {
    const { body } = await ask<{ data: Administered & Readonly<Record<string, unknown>> }>({
      ...{ method: 'POST', path, body: { data }, scope: ADMIN },
    });
    return { ...body.data, secret: String(body.data[secret]) };
  };
  return {
    async read(id, signal) {
      const { body, etag } = await ask<{ data: Administered & Said }>({
        ...{ path: pathOf(id), scope: ADMIN, ...(signal ? { signal } : {}) },
      });
      return { record: body.data, etag };
    },
    create: (said) => issue(`admin/v1/${collection}`, said),
    async update(id, data, etag) {
      const headers = ifMatch(etag);
      await ask({ method: 'PUT', path: pathOf(id), headers, body: { data }, scope: ADMIN });
    },
    async remove(id, etag) {
      await ask({ method: 'DELETE', path: pathOf(id), headers: ifMatch(etag), scope: ADMIN });
    },
    async turn(id, act) {
      await ask({ method: 'POST', path: pathOf(id, act), scope: ADMIN });
    },
    rotate: (id, overlapSeconds) => issue(pathOf(id, 'rotate'), { overlap_seconds: overlapSeconds }),
  };
}
