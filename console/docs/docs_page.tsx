import { useEffect, useState } from 'preact/hooks';
import { useAsked } from '../api/answers.ts';
import { PageHead } from '../layout/head.tsx';
import { href, place } from '../layout/router.ts';
import { Shell } from '../layout/shell.tsx';
import { useObserved } from '../observable.ts';
import type { Api, Operation } from '../openapi/document.ts';
import { OperationList, OperationSearch } from '../openapi/operation_list.tsx';
import { readApi } from '../openapi/reading.ts';
import { Answered, Empty } from '../parts/notices.tsx';
import { OperationPage } from './operation_page.tsx';
import { Overview } from './overview.tsx';

const seek = () => document.querySelector<HTMLInputElement>('.docs-contents input')?.focus();
const SHORTCUTS = [{ keys: '/', words: 'Find an operation', act: seek }];

const hrefOf = ({ id }: Operation) => href(id);

/** The OpenAPI document of the service, to read: nobody need be signed in. */
export function DocsPage() {
  const asked = useAsked(readApi, []);
  const { steps } = useObserved(place);
  const current = steps[0];
  useEffect(() => scrollTo(0, 0), [current]);
  return (
    <Shell
      name="authrealm API"
      look="docs"
      shortcuts={SHORTCUTS}
      navigation={<Contents api={asked.answer} current={current} />}
      lastTool={
        <a class="text-button" href="console">
          Console
        </a>
      }
    >
      <Answered asked={asked}>{(api) => <Shown api={api} current={current} />}</Answered>
    </Shell>
  );
}

/** All operations, at the side. */
function Contents({ api, current }: { readonly api: Api | undefined; readonly current: string | undefined }) {
  const [sought, setSought] = useState('');
  return (
    <nav aria-label="Operations" class="docs-contents">
      <OperationSearch sought={sought} onSought={setSought} />
      {api && (
        <OperationList
          groups={api.groups}
          sought={sought}
          hrefOf={hrefOf}
          current={current}
          isNarrow={true}
        />
      )}
    </nav>
  );
}

function Shown({ api, current }: { readonly api: Api; readonly current: string | undefined }) {
  if (current === undefined) return <Overview api={api} hrefOf={hrefOf} />;
  const operation = api.operations.get(current);
  if (operation) return <OperationPage key={current} api={api} operation={operation} />;
  return (
    <>
      <PageHead title="No such operation" above={[{ label: 'API', href: '#/' }]} />
      <Empty icon="docs" title="This release has no operation of that name">
        <p>
          <a href="#/">See all of them</a>
        </p>
      </Empty>
    </>
  );
}
