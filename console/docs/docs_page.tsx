import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useAsked } from '../api/answers.ts';
import { Brand } from '../layout/brand.tsx';
import { PageHead } from '../layout/head.tsx';
import { KeysDialog, useKeys, useShortcuts } from '../layout/keys.tsx';
import { href, place } from '../layout/router.ts';
import { ThemeSwitch } from '../layout/theme_switch.tsx';
import { useObserved } from '../observable.ts';
import type { Api, Operation } from '../openapi/document.ts';
import { OperationList, OperationSearch } from '../openapi/operation_list.tsx';
import { readApi } from '../openapi/reading.ts';
import { Announcer } from '../parts/announcer.tsx';
import { Icon } from '../parts/icon.tsx';
import { Answered, Empty } from '../parts/notices.tsx';
import { OperationPage } from './operation_page.tsx';
import { Overview } from './overview.tsx';

const hrefOf = ({ id }: Operation) => href(id);

/** The OpenAPI document of the service, to read: nobody need be signed in. */
export function DocsPage() {
  const asked = useAsked(readApi, []);
  const { steps } = useObserved(place);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [areKeysShown, setKeysShown] = useState(false);
  const main = useRef<HTMLElement>(null);
  const current = steps[0];
  useKeys();
  useShortcuts(useMemo(() => shortcuts(() => setKeysShown(true)), []));
  useEffect(() => {
    setMenuOpen(false);
    scrollTo(0, 0);
  }, [current]);
  return (
    <div class={isMenuOpen ? 'layout docs menu-open' : 'layout docs'}>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <header class="bar">
        <a class="brand" href="#/">
          <Brand /> authrealm API
        </a>
        <button
          type="button"
          class="icon-button menu-button"
          aria-expanded={isMenuOpen}
          aria-controls="menu"
          aria-label="Menu"
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          <Icon name={isMenuOpen ? 'close' : 'menu'} />
        </button>
        <div id="menu" class="menu">
          <Contents api={asked.answer} current={current} />
          <div class="menu-tools">
            <ThemeSwitch />
            <button type="button" class="text-button" onClick={() => setKeysShown(true)}>
              <Icon name="keys" /> Keys
            </button>
            <a class="text-button" href="console">
              Console
            </a>
          </div>
        </div>
      </header>
      <main ref={main} id="main" class="main" tabIndex={-1}>
        <Answered asked={asked}>{(api) => <Shown api={api} current={current} />}</Answered>
      </main>
      <Announcer />
      {areKeysShown && <KeysDialog onClose={() => setKeysShown(false)} />}
    </div>
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

function shortcuts(showKeys: () => void) {
  const seek = () => document.querySelector<HTMLInputElement>('.docs-contents input')?.focus();
  return [
    { keys: '?', words: 'Show this list', act: showKeys },
    { keys: '/', words: 'Find an operation', act: seek },
  ];
}
