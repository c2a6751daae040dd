import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import { Layout } from './layout/layout.tsx';
import { applyTheme } from './layout/theme.tsx';
import { useObserved } from './observable.ts';
import { PAGES } from './pages/pages.ts';
import { Waiting } from './parts/notices.tsx';
import { resumeSession, session } from './session/session.ts';
import { enter, isEntering, readArrival } from './sign_in/sign_in.ts';
import { SignInPage } from './sign_in/sign_in_page.tsx';

/** Before anything else is asked or drawn: what the address brings leaves it. */
const arrival = readArrival();

applyTheme();
resumeSession();
if (arrival) void enter(arrival);

function Console() {
  const { open, why, again } = useObserved(session);
  const isWaiting = useObserved(isEntering);
  // Who opens a link in a tab that is there already brings a code to it.
  useEffect(() => {
    const hear = () => {
      const later = readArrival();
      if (later) void enter(later);
    };
    addEventListener('hashchange', hear);
    return () => removeEventListener('hashchange', hear);
  }, []);
  // What was read by one session is not shown in another one.
  if (open) return <Layout key={open.token} pages={PAGES} isEntering={isWaiting} />;
  return isWaiting ? <Waiting /> : <SignInPage why={why} again={again} />;
}

const root = document.getElementById('console');
if (root) {
  root.textContent = '';
  render(<Console />, root);
}
