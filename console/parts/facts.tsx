import type { ComponentChildren } from 'preact';
import type { ApiRecord } from '../api/records.ts';
import type { Description } from '../description.ts';
import { CopyButton, Identifier } from './copy.tsx';
import { inSentence, isIdentifier, memberLabel, valueLabel } from './resource_labels.ts';
import { Timestamp } from './timestamp.tsx';
import { UntrustedText } from './untrusted_text.tsx';

interface RecordFactsProps {
  readonly description: Description;
  readonly record: ApiRecord;
  /** Further facts, shown first. */
  readonly children?: ComponentChildren;
}

/** All visible members of a record, its ID and times. */
export function RecordFacts({ description, record, children }: RecordFactsProps) {
  return (
    <dl class="facts">
      {children}
      {description.fields
        .filter(({ isShown }) => isShown)
        .map(({ name, kind }) => (
          <Fact key={name} label={memberLabel(name)}>
            <FactValue member={name} value={record[name]} />
            {kind === 'url' && typeof record[name] === 'string' && (
              <CopyButton text={String(record[name])} what={`the ${inSentence(memberLabel(name))}`} />
            )}
          </Fact>
        ))}
      <Fact label="ID">
        <Identifier id={record.id} what={`the ${description.words[0]} ID`} />
      </Fact>
      <Times created={record.created_at} changed={record.updated_at} />
    </dl>
  );
}

/** When a record was created, and last changed. */
export function Times({ created, changed }: Readonly<Record<'created' | 'changed', string>>) {
  return (
    <>
      <Fact label="Created">
        <Timestamp at={created} />
      </Fact>
      <Fact label="Changed">
        <Timestamp at={changed} />
      </Fact>
    </>
  );
}

export function Fact({ label, children }: Readonly<Record<'label' | 'children', ComponentChildren>>) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function FactValue({ member, value }: { readonly member: string; readonly value: unknown }) {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) {
    return <span class="faint">none</span>;
  }
  if (typeof value === 'boolean') return <>{value ? 'yes' : 'no'}</>;
  if (Array.isArray(value)) {
    return (
      <ul>
        {value.map((each) => (
          <li key={String(each)}>
            <UntrustedText text={String(each)} />
          </li>
        ))}
      </ul>
    );
  }
  if (typeof value === 'object') {
    const words = wordsIn(value).map((word) => valueLabel(member, word));
    return <UntrustedText text={words.toReversed().join(' ')} />;
  }
  return <UntrustedText text={valueLabel(member, String(value))} isIdentifier={isIdentifier(member)} />;
}

/** The texts of a structured value. */
function wordsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(wordsIn) : [];
}
