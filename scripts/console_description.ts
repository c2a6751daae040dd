import { z } from 'zod';
import type { ConsoleSchema, Description, Field, FieldKind } from '../console/description.ts';
import { EVENT_NAMES } from '../src/deliver/webhooks/targets.ts';
import { LIMITS } from '../src/model/limits.ts';
import { IMPLICIT_SCOPES, ROLES, SCOPES } from '../src/model/principal.ts';
import {
  type Annotation,
  ancestry,
  isVisible,
  type Member,
  membersOf,
  type Resource,
} from '../src/model/resource.ts';
import { DESCRIPTIONS } from '../src/model/resources.ts';
import { writableMembers } from '../src/model/writable_members.ts';
import { readHealthChecks } from './health_checks.ts';
import { readManifest, releasedFiles } from './release/owner.ts';

/** The resources, limits, scopes, events and checks in the form that the console uses, derived from the descriptions of the service. */
export function describeForConsole(): ConsoleSchema {
  const files = releasedFiles();
  const described = Object.entries(DESCRIPTIONS).map(([name, resource]) => [name, describe(resource)]);
  return {
    resources: Object.fromEntries(described) as ConsoleSchema['resources'],
    limits: {
      answerMsMax: LIMITS.answerMsMax,
      pageRecordsMax: LIMITS.pageRecordsMax,
      passwordsPerRequestMax: LIMITS.passwordsPerRequestMax,
      filterWordsMax: LIMITS.filterWordsMax,
      searchCountMax: LIMITS.searchCountMax,
      secretOverlapHoursMax: LIMITS.secretOverlapHoursMax,
      webhookEventsMax: LIMITS.webhookEventsMax,
    },
    scopes: SCOPES,
    roles: Object.entries(ROLES).map(([id, { scopes, summary }]) => ({
      id,
      label: `${id}: ${summary}`,
      scopes,
    })),
    implicitScopes: SCOPES.filter((scope) => IMPLICIT_SCOPES.has(scope)),
    events: EVENT_NAMES,
    healthChecks: readHealthChecks(),
    ...(files === undefined ? {} : { files }),
    version: readManifest().version,
  };
}

function describe(resource: Resource): Description {
  const { name, type, parent, includedAs, scope, words, summary, protectedBy, unique } = resource;
  const passwords = Object.entries(resource.inputs ?? {}).map(
    ([input, { schema }]): Field => ({
      ...fieldOf(resource, { name: input, schema, annotation: {} }),
      kind: 'password',
      isShown: false,
    }),
  );
  return {
    ...{ name, type, scope, words, summary, unique },
    collections: ancestry(resource).map(({ collection }) => collection),
    ...(parent ? { parent: parent.name } : {}),
    ...(includedAs === undefined ? {} : { includedAs }),
    ...(protectedBy === undefined ? {} : { protectedBy }),
    fields: [...membersOf(resource).map((member) => fieldOf(resource, member)), ...passwords].filter(
      ({ isShown, writableBy }) => isShown || writableBy !== 'none',
    ),
  };
}

/** The parts of a JSON Schema that a form uses. */
interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly items?: Schema;
}

function schemaOf(member: Member): Schema {
  return z.toJSONSchema(member.schema, { io: 'output', unrepresentable: 'any' }) as Schema;
}

function fieldOf(resource: Resource, member: Member): Field {
  const { name, annotation } = member;
  const outer = schemaOf(member);
  const inner = outer.anyOf?.find(({ type }) => type !== 'null') ?? outer;
  const writable = writableMembers(resource, 'create').find((each) => each.name === name);
  const { minLength: least = 0 } = inner;
  const most = inner.maxLength ?? inner.maxItems;
  const [example] = (inner.examples ?? outer.examples ?? []).flat();
  const fallback = outer.default;
  return {
    name,
    kind: kindOf(inner, annotation),
    within: annotation.within ?? 'data',
    writableBy: annotation.writableBy ?? 'anyone',
    isShown: isVisible(member),
    isRequired:
      writable !== undefined && (writable.isRequired || !writable.schema.safeParse(undefined).success),
    isNullable: outer !== inner,
    choices: inner.enum ?? [],
    ...(least > 1 ? { least } : {}),
    ...(most === undefined ? {} : { most }),
    ...(typeof fallback === 'string' || typeof fallback === 'boolean' ? { fallback } : {}),
    ...(typeof example === 'string' ? { example } : {}),
    ...(annotation.references ? { references: annotation.references } : {}),
    ...(annotation.sameAs ? { sameAs: annotation.sameAs } : {}),
    isImmutable: annotation.immutableWhileReferenced === true,
  };
}

const KINDS_OF_FORMATS: Readonly<Record<string, FieldKind>> = { uri: 'url' };
const KINDS_OF_TYPES: Readonly<Record<string, FieldKind>> = {
  boolean: 'flag',
  array: 'texts',
  string: 'text',
};

function kindOf(schema: Schema, { references, secret }: Annotation): FieldKind {
  if (references) return 'reference';
  if (secret) return 'password';
  if (schema.enum) return 'choice';
  return KINDS_OF_FORMATS[schema.format ?? ''] ?? KINDS_OF_TYPES[schema.type ?? ''] ?? 'other';
}
