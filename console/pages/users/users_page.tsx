import { SCHEMA } from 'authrealm:schema';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useMemo, useState } from 'preact/hooks';
import { RESOURCES } from '../../api/records.ts';
import type { FoundRecord } from '../../api/search_realms.ts';
import { Checks } from '../../form/fields.tsx';
import { PageHead, type PageProps } from '../../layout/page.tsx';
import { currentRoute, href, navigate, replaceQuery } from '../../layout/router.ts';
import { PagedList } from '../../parts/long_list.tsx';
import { EmptyState } from '../../parts/notices.tsx';
import { RealmName } from '../../parts/realm_name.tsx';
import { isIdentifier, memberLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { useDebounced } from '../../parts/use_debounced.ts';
import { wordProblem } from '../find/word_filter.ts';
import { CreateButton, realmBreadcrumbs } from '../realms/record_views.tsx';
import { RealmPicker } from '../try/record_picker.tsx';
import { userPages } from './users.ts';

/** The users of all realms that this session may see, or of one: that of the address, or a chosen one. */
export function UsersPage({ parameters: { realm: home = '' } }: PageProps) {
  const id = useId();
  const { query } = currentRoute.get();
  const [text, setText] = useState(query.get('q') ?? '');
  const [chosen, setRealm] = useState(query.get('realm') ?? '');
  const realm = useDebounced(home || chosen.trim());
  const [columns, setColumns] = useState(readColumns);
  /** `many`: too many to count. */
  const [total, setTotal] = useState<number | 'many'>();
  const term = useDebounced(text.trim());
  const read = useMemo(
    () => userPages({ text: term, realm }, (found) => setTotal(found ?? 'many')),
    [term, realm],
  );
  useEffect(() => setTotal(undefined), [read]);
  useEffect(() => replaceQuery({ q: term, realm: home ? '' : realm }), [term, realm]);
  const choose = (names: readonly string[]) => {
    localStorage.setItem(NAME, names.join());
    setColumns(names);
  };
  const isFiltered = term !== '';
  return (
    <>
      <PageHead
        title="Users"
        breadcrumbs={home === '' ? [] : realmBreadcrumbs(home)}
        actions={
          realm !== '' && (
            <CreateButton
              description={RESOURCES.users}
              parentKey={[realm]}
              onDone={({ record }) => navigate(href('realms', realm, 'users', record.id))}
            />
          )
        }
      />
      <search class="filters" aria-label="Filter users">
        <div class="field">
          <label for={id}>Name or e-mail</label>
          <input
            id={id}
            type="search"
            value={text}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            placeholder="First letters"
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </div>
        {home === '' && <RealmPicker realm={chosen} onRealm={setRealm} />}
      </search>
      <div class="list-tools">
        <p class="faint small" role="status">
          {read ? total !== undefined && totalText(total, isFiltered) : wordProblem(term)}
        </p>
        <ColumnChoice columns={columns} onColumns={choose} />
      </div>
      <div class="table-head faint small" style={templateOf(columns)} aria-hidden="true">
        {columns.map((column) => (
          <span key={column}>{columnLabel(column)}</span>
        ))}
      </div>
      {read && (
        <PagedList
          label="users"
          read={read}
          row={(user) => <UserRow user={user} columns={columns} />}
          empty={
            isFiltered ? (
              <EmptyState icon="user" title="No user found">
                <p>
                  Every word must begin a word of a name or of the e-mail address. Usernames and subjects are
                  found under Find.
                </p>
              </EmptyState>
            ) : (
              <EmptyState icon="user" title="No users yet">
                <p>
                  Create the first one in a realm, or import many at once with <code>authrealm import</code>.
                </p>
              </EmptyState>
            )
          }
        />
      )}
    </>
  );
}

const NAME = 'authrealm.users.columns';
const COLUMNS = [
  'name',
  'email',
  'given_name',
  'middle_name',
  'family_name',
  'realm',
  'created_at',
  'updated_at',
  'id',
];
const DEFAULT_COLUMNS: readonly string[] = ['name', 'email', 'realm', 'created_at'];

function readColumns(): readonly string[] {
  const stored = localStorage.getItem(NAME)?.split(',') ?? [];
  const known = COLUMNS.filter((column) => stored.includes(column));
  return known.length > 0 ? known : DEFAULT_COLUMNS;
}

function columnLabel(column: string): string {
  if (column === 'realm') return 'Realm';
  if (column === 'created_at') return 'Since';
  return column === 'id' ? 'ID' : memberLabel(column);
}

const NUMBER = new Intl.NumberFormat('en');

function totalText(total: number | 'many', isFiltered: boolean): string {
  if (total === 'many') return `More than ${NUMBER.format(SCHEMA.limits.searchCountMax)} users found`;
  const users = `${NUMBER.format(total)} ${total === 1 ? 'user' : 'users'}`;
  return isFiltered ? `${users} found` : users;
}

const templateOf = (columns: readonly string[]) => ({
  gridTemplateColumns: `repeat(${columns.length}, minmax(0, 1fr))`,
});

interface UserRowProps {
  readonly user: FoundRecord;
  readonly columns: readonly string[];
}

function UserRow({ user, columns }: UserRowProps) {
  return (
    <a class="row cells" style={templateOf(columns)} href={href('realms', user.realm, 'users', user.user)}>
      {columns.map((column) => (
        <span key={column} class="cell">
          <span class="unseen">{columnLabel(column)}: </span>
          {column === 'realm' ? <RealmName id={user.realm} /> : cellOf(user, column)}
        </span>
      ))}
    </a>
  );
}

function cellOf({ record }: FoundRecord, column: string): ComponentChildren {
  const value = record[column];
  if (column === 'created_at' || column === 'updated_at') return <Timestamp at={String(value)} />;
  return value === null ? (
    <span class="faint">–</span>
  ) : (
    <UntrustedText text={String(value)} isIdentifier={isIdentifier(column)} />
  );
}

interface ColumnChoiceProps {
  readonly columns: readonly string[];
  readonly onColumns: (columns: readonly string[]) => void;
}

/** The name is always shown. */
function ColumnChoice({ columns, onColumns }: ColumnChoiceProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="columns" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary class="text-button">Columns</summary>
      {isOpen && (
        <fieldset>
          <legend class="unseen">Columns</legend>
          <Checks
            class="stack-tight"
            options={COLUMNS.slice(1).map((id) => ({ id, label: columnLabel(id) }))}
            selected={columns}
            onSelect={(chosen) => onColumns(['name', ...chosen])}
          />
        </fieldset>
      )}
    </details>
  );
}
