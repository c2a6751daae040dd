/**
 * The descriptions of resources as plain data. The build derives them from `src/model/resources.ts`;
 * validation stays in the service.
 */

export type FieldKind = 'text' | 'url' | 'choice' | 'flag' | 'texts' | 'reference' | 'password' | 'other';

export interface Field {
  readonly name: string;
  readonly kind: FieldKind;
  /** The object of a body that holds it. */
  readonly within: 'data' | 'meta' | 'relationships';
  readonly writableBy: 'anyone' | 'creator' | 'offline' | 'none';
  /** Whether responses contain it. */
  readonly isShown: boolean;
  /** Required when a record is created. */
  readonly isRequired: boolean;
  readonly isNullable: boolean;
  /** For the kind `choice`. */
  readonly choices: readonly string[];
  /** Code points of a password. */
  readonly least?: number;
  /** Code points of a text, entries of `texts`. */
  readonly most?: number;
  /** The default value. */
  readonly fallback?: string | boolean;
  readonly example?: string;
  /** The resource that it refers to. */
  readonly references?: string;
  /** Copied from this member of the record that the member `reference` refers to. */
  readonly sameAs?: { readonly reference: string; readonly member: string };
  readonly isImmutable: boolean;
}

export interface Description {
  readonly name: string;
  readonly type: string;
  /** The path segments of the collections, from the realms down to its own. */
  readonly collections: readonly string[];
  readonly parent?: string;
  /** Its name in the `include` of a request for its parent record. */
  readonly includedAs?: string;
  /** Its scopes are `<scope>:read` and `<scope>:write`. */
  readonly scope: string;
  /** What people call a record and several of them. */
  readonly words: readonly [one: string, many: string];
  readonly summary: string;
  /** Sets of members that no two records of a realm share. */
  readonly unique: readonly (readonly string[])[];
  /** A record in which this member is true cannot be deleted. */
  readonly protectedBy?: string;
  readonly fields: readonly Field[];
}

/** A limit on a metric, from an alert rule. */
export interface HealthCheck {
  readonly name: string;
  /** The value is broken above it, or below it if it is a minimum. */
  readonly limit: number;
  readonly isMinimum: boolean;
  readonly metric: string;
  /** Patterns that labels of a sample must match. */
  readonly labels: readonly (readonly [label: string, pattern: string])[];
  /** The value is the share of this metric. */
  readonly per?: string;
  /** Of a counter or histogram: whether the value is a second's or that of all `seconds`. */
  readonly over?: 'rate' | 'increase';
  readonly seconds?: number;
  /** Of a histogram. */
  readonly quantile?: number;
  /** What to do if it is broken. */
  readonly advice: string;
  /** A path in the repository. */
  readonly guide: string;
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
    readonly pageRecordsMax: number;
    readonly passwordsPerRequestMax: number;
    readonly filterWordsMax: number;
    readonly searchCountMax: number;
    readonly secretOverlapHoursMax: number;
    readonly webhookEventsMax: number;
  };
  /** Every scope that a client can have, without short forms. */
  readonly scopes: readonly string[];
  /** From the lowest to the highest. */
  readonly roles: readonly Readonly<{ id: string; label: string; scopes: readonly string[] }>[];
  /** Those that the ID of a client alone can give. */
  readonly implicitScopes: readonly string[];
  /** Every event that a webhook target can receive. */
  readonly events: readonly string[];
  readonly healthChecks: readonly HealthCheck[];
  /** The address of the files of this release; absent while the package names no repository. */
  readonly files?: string;
  /** Of the package. */
  readonly version: string;
}
