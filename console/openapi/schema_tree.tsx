import { Prose } from './code.tsx';
import { type ApiDocument, nameOf, resolveReference, type Schema } from './document.ts';

interface SchemaTreeProps {
  readonly document: ApiDocument;
  readonly schema: Schema;
}

/** The members of a schema; nested members expand without a script. */
export function SchemaTree({ document, schema }: SchemaTreeProps) {
  const inner = innerOf(document, schema);
  if (inner.variants.length > 0) {
    return (
      <div class="stack-tight">
        {inner.variants.map((variant, index) => (
          <div key={index}>
            <p class="small faint">{index === 0 ? 'Either' : 'or'}</p>
            <SchemaTree document={document} schema={variant} />
          </div>
        ))}
      </div>
    );
  }
  if (inner.members.length === 0) return <p class="small">{typeOf(document, schema)}</p>;
  return (
    <ul class="schema">
      {inner.members.map(({ name, schema: member, isRequired }) => (
        <MemberRow key={name} document={document} name={name} schema={member} isRequired={isRequired} />
      ))}
    </ul>
  );
}

interface MemberRowProps extends SchemaTreeProps {
  readonly name: string;
  readonly isRequired: boolean;
  /** Default: that of the schema. */
  readonly description?: string;
  readonly example?: unknown;
}

/** A member of a schema, or a parameter. */
export function MemberRow({ document, name, schema, isRequired, ...own }: MemberRowProps) {
  const inner = innerOf(document, schema);
  const hasMore = inner.members.length > 0 || inner.variants.length > 0;
  const whole = resolveReference<Schema>(document, schema);
  const { description = whole.description, example = '' } = own;
  return (
    <li>
      <div class="schema-member">
        <code class="schema-name">{name}</code>
        <span class="faint small">{typeOf(document, schema)}</span>
        {isRequired && <span class="badge">required</span>}
      </div>
      <div class="schema-more">
        {description !== undefined && (
          <p class="small">
            <Prose text={description} />
          </p>
        )}
        <Rules schema={whole} />
        {example !== '' && (
          <p class="small faint">
            Example: <code>{String(example)}</code>
          </p>
        )}
        {hasMore && (
          <details open={name === 'data'}>
            <summary class="small">Members of {name}</summary>
            <SchemaTree document={document} schema={schema} />
          </details>
        )}
      </div>
    </li>
  );
}

/** Constraints of a schema. */
function Rules({ schema }: { readonly schema: Schema }) {
  const text = rulesOf(schema).join(' · ');
  const { enum: choices = [], pattern } = schema;
  if (text === '' && choices.length === 0 && pattern === undefined) return null;
  return (
    <p class="small faint">
      {text}
      {choices.length > 0 && (
        <>
          {text === '' ? '' : ' · '}one of{' '}
          {choices.map((choice, index) => (
            <span key={index}>
              {index === 0 ? '' : ', '}
              <code>{String(choice)}</code>
            </span>
          ))}
        </>
      )}
      {pattern !== undefined && (
        <>
          {text === '' ? '' : ' · '}
          <code>{pattern}</code>
        </>
      )}
    </p>
  );
}

function rulesOf({
  minLength,
  maxLength,
  minimum,
  maximum,
  minItems,
  maxItems,
  default: defaultValue,
}: Schema) {
  return [
    ...spanOf(minLength, maxLength, 'characters'),
    ...spanOf(minimum, maximum, ''),
    ...spanOf(minItems, maxItems, 'entries'),
    ...(defaultValue === undefined ? [] : [`${JSON.stringify(defaultValue)} by default`]),
  ];
}

function spanOf(lower: number | undefined, upper: number | undefined, what: string): readonly string[] {
  const far = upper === undefined || upper >= Number.MAX_SAFE_INTEGER ? undefined : upper;
  const near = lower === undefined || lower <= Number.MIN_SAFE_INTEGER ? undefined : lower;
  if (far === undefined && near === undefined) return [];
  if (far === undefined) return [`${near} ${what} or more`.replace('  ', ' ')];
  return [`${near ?? 0} to ${far} ${what}`.trim()];
}

interface Inner {
  readonly members: readonly {
    readonly name: string;
    readonly schema: Schema;
    readonly isRequired: boolean;
  }[];
  readonly variants: readonly Schema[];
}

/** The members of an object, or of the entries of a list. */
function innerOf(document: ApiDocument, schema: Schema): Inner {
  const {
    properties,
    required = [],
    items,
    oneOf,
    anyOf = oneOf,
    additionalProperties,
  } = resolveReference<Schema>(document, schema);
  if (properties) {
    const members = Object.entries(properties).map(([name, member]) => ({
      ...{ name, schema: member, isRequired: required.includes(name) },
    }));
    return { members, variants: [] };
  }
  if (items) return innerOf(document, items);
  if (typeof additionalProperties === 'object') return innerOf(document, additionalProperties);
  const variants = (anyOf ?? []).filter((each) => !isNull(each));
  const first = variants[0];
  if (variants.length === 1 && first) return innerOf(document, first);
  const isDeep = variants.some((each) => hasMembers(document, each));
  return { members: [], variants: isDeep ? variants : [] };
}

function hasMembers(document: ApiDocument, schema: Schema): boolean {
  const { members, variants } = innerOf(document, schema);
  return members.length > 0 || variants.length > 0;
}

function isNull({ type }: Schema): boolean {
  return type === 'null';
}

/** The type of a value as text. */
function typeOf(document: ApiDocument, schema: Schema): string {
  const {
    type,
    format,
    items,
    oneOf,
    anyOf = oneOf,
    const: constant,
  } = resolveReference<Schema>(document, schema);
  if (constant !== undefined) return JSON.stringify(constant);
  if (anyOf) return anyOf.map((each) => typeOf(document, each)).join(' or ');
  if (items) return `list of ${items.$ref === undefined ? typeOf(document, items) : nameOf(items.$ref)}`;
  if (schema.$ref !== undefined && type === 'object') return nameOf(schema.$ref);
  const words = typeof type === 'string' ? type : (type?.join(' or ') ?? 'anything');
  return format === undefined ? words : `${words}, ${format}`;
}
