import type { Revision } from '../model/id.ts';
import type { Key, KeyPrefix, Resource } from '../model/resource.ts';
import type { JsonObject } from '../model/text/json_object.ts';
import type { TraceContext } from '../model/trace_context.ts';

export interface WriteContext {
  readonly actor: string;
  readonly requestId: string;
  /** The IP address of the caller; undefined if unknown. */
  readonly address: string | undefined;
  readonly trace?: TraceContext | undefined;
  /** Whether the caller has the scope `admin`. */
  readonly isAdmin?: boolean;
}

interface AnyRequest {
  readonly resource: Resource;
  /**
   * The item of a batch, `requests.0` for example: errors name it, and its `body`, `path` and `if_match`. Default: the
   * request itself; errors about its whole record have no source.
   */
  readonly item?: string;
}

/** `body` has the record in `data` and may have records below it in `included`. */
export interface CreateRequest extends AnyRequest {
  readonly verb: 'create';
  readonly scope: KeyPrefix;
  readonly body: JsonObject;
  /** Members of the record that callers cannot write. Default: those of the description. */
  readonly fixed?: Readonly<Record<string, unknown>>;
  /** The revision that the user above the record must have; undefined for any. */
  readonly expectedParentRevision?: Revision | undefined;
}

interface KeyedRequest extends AnyRequest {
  readonly key: Key;
  /** The revision that the stored record must have (`If-Match`); undefined for any. */
  readonly expectedRevision: Revision | undefined;
}

/** Partial: members that `data` omits stay. */
export interface UpdateRequest extends KeyedRequest {
  readonly verb: 'update';
  readonly body: JsonObject;
  /** Of a user: its sign-ins end as well. */
  readonly endsSignIns?: true;
}

interface RemoveRequest extends KeyedRequest {
  readonly verb: 'remove';
}

/** A request to write one record and, in a create, records below it. */
export type WriteRequest = CreateRequest | UpdateRequest | RemoveRequest;
