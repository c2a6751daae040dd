import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import { Layout } from './layout/layout.tsx';
import { applyTheme } from './layout/theme.ts';
import { observable, useObserved } from './observable.ts';
import { PAGES } from './pages/pages.ts';
import { Waiting } from './parts/notices.tsx';
import { resumeSession, session } from './session/session.ts';
import { readArrival } from './sign_in/arrival.ts';
import { enter } from './sign_in/sign_in.ts';
import { SignInPage } from './sign_in/sign_in_page.tsx';

/** Before anything else is asked or drawn: what the address brings leaves it. */
const arrival = readArrival();
const isEntering = observable(arrival !== undefined);

applyTheme();
if (arrival) {
  void enter(arrival).finally(() => isEntering.set(false));
} else {
  resumeSession();
}

function Console() {
  const { open, why } = useObserved(session);
  const isWaiting = useObserved(isEntering);
  // Who opens a link in a tab that is there already brings a code to it.
  useEffect(() => {
    const hear = () => {
      const later = readArrival();
      if (!later) return;
      isEntering.set(true);
      void enter(later).finally(() => isEntering.set(false));
    };
    addEventListener('hashchange', hear);
    return () => removeEventListener('hashchange', hear);
  }, []);
  if (isWaiting) return <Waiting />;
  return open ? <Layout pages={PAGES} /> : <SignInPage why={why} />;
}

const root = document.getElementById('console');
if (root) {
  root.textContent = '';
  render(<Console />, root);
}
