/**
 * What the page knows of resources: their descriptions as plain data. The build derives them from
 * `src/domain/resources.ts`; what validates records stays with the service.
 */

export type FieldKind =
  | 'text'
  | 'url'
  | 'email'
  | 'choice'
  | 'flag'
  | 'texts'
  | 'reference'
  | 'password'
  | 'other';

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly kind: FieldKind;
  /** The object that holds it in a body. */
  readonly within: 'data' | 'meta' | 'relationships';
  readonly writableBy: 'anyone' | 'creator' | 'nobody';
  /** Whether an answer shows it. */
  readonly isShown: boolean;
  /** Whoever creates a record must say it. */
  readonly isRequired: boolean;
  readonly isNullable: boolean;
  /** Of the kind `choice`. */
  readonly choices: readonly string[];
  /** Code points of a text, entries of `texts`. */
  readonly most?: number;
  /** What it is where nobody says. */
  readonly fallback?: string | boolean;
  readonly example?: string;
  /** The name of the resource whose record it names. */
  readonly references?: string;
  /** Its value is taken from this member of the record that the member `reference` names. */
  readonly sameAs?: { readonly reference: string; readonly member: string };
  readonly isImmutable: boolean;
}

export interface Description {
  readonly name: string;
  readonly type: string;
  /** The path segments of the collections, from the realms down to its own. */
  readonly collections: readonly string[];
  readonly parent?: string;
  /** The members of a line of an export that name the records above, realm first. */
  readonly namesAbove: readonly string[];
  /** The scope that reads it is `<scope>:read`, the one that writes it `<scope>:write`. */
  readonly scope: string;
  readonly summary: string;
  /** A record in which this member is true is not removed. */
  readonly protectedBy?: string;
  readonly fields: readonly Field[];
}

export interface ConsoleSchema {
  readonly resources: Readonly<
    Record<
      'realms' | 'oidcProfiles' | 'passwordProfiles' | 'users' | 'oidcProfileInfos' | 'passwordProfileInfos',
      Description
    >
  >;
  readonly limits: {
    readonly answerMsMax: number;
    readonly streamKeepAliveMs: number;
    readonly pageRecordsMax: number;
    readonly secretOverlapHoursMax: number;
    readonly webhookEventsMax: number;
  };
  /** What a client can hold, short forms left out. */
  readonly scopes: readonly string[];
  /** What a webhook target can be told. */
  readonly events: readonly string[];
  /** Of the package. */
  readonly version: string;
}
