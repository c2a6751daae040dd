import type { ComponentChildren } from 'preact';
import type { Shown } from '../api/records.ts';
import type { Description } from '../description.ts';
import { Copy, Identifier } from './copy.tsx';
import { nounOf } from './resource_labels.ts';
import { Instant } from './timestamp.tsx';
import { Said } from './untrusted_text.tsx';

/** Every member of a record that an answer shows, and what is the same of all records. */
export function RecordFacts({
  description,
  record,
}: {
  readonly description: Description;
  readonly record: Shown;
}) {
  return (
    <dl class="facts">
      {description.fields
        .filter(({ isShown }) => isShown)
        .map(({ name, label, kind }) => (
          <Fact key={name} label={label}>
            <FactValue value={record[name]} />
            {kind === 'url' && typeof record[name] === 'string' && (
              <Copy text={String(record[name])} what={`the ${label}`} />
            )}
          </Fact>
        ))}
      <Fact label="ID">
        <Identifier id={record.id} what={`the ${nounOf(description.name).one} ID`} />
      </Fact>
      <Fact label="Created">
        <Instant at={record.created_at} />
      </Fact>
      <Fact label="Changed">
        <Instant at={record.updated_at} />
      </Fact>
    </dl>
  );
}

export function Fact({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function FactValue({ value }: { readonly value: unknown }) {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) {
    return <span class="faint">none</span>;
  }
  if (typeof value === 'boolean') return <>{value ? 'yes' : 'no'}</>;
  if (Array.isArray(value)) {
    return (
      <ul>
        {value.map((each) => (
          <li key={String(each)}>
            <Said text={String(each)} />
          </li>
        ))}
      </ul>
    );
  }
  if (typeof value === 'object') return <Said text={wordsIn(value).join(' ')} />;
  return <Said text={String(value)} />;
}

/** The texts of a value that has parts. */
function wordsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(wordsIn) : [];
}
