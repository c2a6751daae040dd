import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { BASE_PATH } from './api/call_api.ts';
import { useFetch } from './api/use_fetch.ts';
import { PageHead } from './layout/page.tsx';
import { currentRoute, href } from './layout/router.ts';
import { Shell } from './layout/shell.tsx';
import { applyTheme } from './layout/theme.tsx';
import { useObservable } from './observable.ts';
import { Prose } from './openapi/code.tsx';
import type { Api, Operation } from './openapi/document.ts';
import { OperationList } from './openapi/operation_list.tsx';
import { Description, OperationReference } from './openapi/operation_parts.tsx';
import { readApi } from './openapi/read_api.ts';
import { CopyButton } from './parts/copy.tsx';
import { Fact } from './parts/facts.tsx';
import { Icon } from './parts/icon.tsx';
import { EmptyState, Loaded } from './parts/notices.tsx';

const focusSearch = () => document.querySelector<HTMLInputElement>('.docs-contents input')?.focus();
const SHORTCUTS = [{ keys: '/', label: 'Find an operation', run: focusSearch }];

const hrefOf = ({ id }: Operation) => href(id);

/** The reference of the API; it needs no session. */
function DocsPage() {
  const fetched = useFetch(readApi, []);
  const { segments } = useObservable(currentRoute);
  const current = segments[0];
  useEffect(() => scrollTo(0, 0), [current]);
  return (
    <Shell
      name="authrealm API"
      look="docs"
      shortcuts={SHORTCUTS}
      navigation={<Contents api={fetched.answer} current={current} />}
      lastTool={
        <a class="text-button" href="console">
          Console
        </a>
      }
    >
      <Loaded fetched={fetched}>{(api) => <Reference api={api} current={current} />}</Loaded>
    </Shell>
  );
}

/** The list of operations in the side bar. */
function Contents({ api, current }: { readonly api: Api | undefined; readonly current: string | undefined }) {
  const [term, setTerm] = useState('');
  return (
    <nav aria-label="Operations" class="docs-contents">
      <search class="find find-operation">
        <Icon name="find" />
        <input
          type="search"
          value={term}
          placeholder="Find an operation"
          aria-label="Find an operation"
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => setTerm(currentTarget.value)}
        />
      </search>
      {api && (
        <OperationList groups={api.groups} term={term} hrefOf={hrefOf} current={current} isNarrow={true} />
      )}
    </nav>
  );
}

function Reference({ api, current }: { readonly api: Api; readonly current: string | undefined }) {
  if (current === undefined) return <Overview api={api} />;
  const operation = api.operations.get(current);
  if (operation) return <OperationPage key={current} api={api} operation={operation} />;
  return (
    <>
      <PageHead title="Operation not found" breadcrumbs={[{ label: 'API', href: '#/' }]} />
      <EmptyState icon="docs" title="This release has no such operation">
        <p>
          <a href="#/">See all operations</a>
        </p>
      </EmptyState>
    </>
  );
}

function OperationPage({ api, operation }: { readonly api: Api; readonly operation: Operation }) {
  const label = operation.summary.replace(/\.$/, '');
  return (
    <>
      <PageHead
        title={label}
        heading={<Prose text={label} />}
        breadcrumbs={[{ label: 'API', href: '#/' }]}
        actions={
          <a class="button button-main" href={`console${href('try', operation.id)}`}>
            <Icon name="try" /> Try it
          </a>
        }
      />
      <OperationReference document={api.document} operation={operation} base={location.origin + BASE_PATH} />
    </>
  );
}

/** The start page of the reference. */
function Overview({ api }: { readonly api: Api }) {
  const { info } = api.document;
  const base = location.origin + BASE_PATH.replace(/\/$/, '');
  return (
    <>
      <PageHead
        title={`${info.title} API`}
        actions={
          <a class="button" href="openapi.json">
            openapi.json
          </a>
        }
      />
      <Description {...info} />
      <section class="card overview-facts" aria-label="Connection">
        <dl class="facts">
          <Fact label="Base URL">
            <span class="identifier">
              <code>{base}</code>
              <CopyButton text={base} what="the base URL" />
            </span>
          </Fact>
          <Fact label="Release">{info.version}</Fact>
          <Fact label="Token">
            <Prose text="`Authorization: Bearer …`, from " />
            <a href="#/get-access-token">the token endpoint</a>, for client credentials.
          </Fact>
        </dl>
      </section>
      <OperationList groups={api.groups} term="" hrefOf={hrefOf} />
    </>
  );
}

applyTheme();

const root = document.getElementById('console');
if (root) {
  root.textContent = '';
  render(<DocsPage />, root);
}
