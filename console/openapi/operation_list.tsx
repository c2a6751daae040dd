import { type Group, matching, type Operation } from './document.ts';
import { Method } from './operation_parts.tsx';

interface OperationListProps {
  readonly groups: readonly Group[];
  readonly term: string;
  readonly hrefOf: (operation: Operation) => string;
  readonly current?: string | undefined;
  /** Compact, for the side bar. */
  readonly isNarrow?: boolean;
}

/** Operations by group. */
export function OperationList({ groups, term, hrefOf, current, isNarrow = false }: OperationListProps) {
  const found = matching(groups, term);
  if (found.length === 0) return <p class="faint small">No matching operations.</p>;
  return (
    <div class={isNarrow ? 'operations operations-narrow' : 'operations'}>
      {found.map(({ name, description, operations }) => (
        <section key={name} class="stack-tight">
          <h2>{name}</h2>
          {!isNarrow && description !== undefined && <p class="faint small">{description}</p>}
          <ul>
            {operations.map((operation) => (
              <li key={operation.id}>
                <a
                  class="operation"
                  href={hrefOf(operation)}
                  aria-current={operation.id === current ? 'page' : undefined}
                >
                  <Method method={operation.method} />
                  {isNarrow ? (
                    <span>{operation.summary.replace(/[.:;].*$/s, '')}</span>
                  ) : (
                    <span class="operation-words">
                      <code>{operation.path}</code>
                      <span class="faint small">{operation.summary}</span>
                    </span>
                  )}
                </a>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}
