import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import { Layout } from './layout/layout.tsx';
import { applyTheme } from './layout/theme.tsx';
import { useObservable } from './observable.ts';
import { PAGES } from './pages/pages.ts';
import { Loading } from './parts/notices.tsx';
import { resumeSession, session } from './session/session.ts';
import { completeSignIn, isSigningIn, readSignInCallback } from './sign_in/sign_in.ts';
import { SignInPage } from './sign_in/sign_in_page.tsx';

/** First of all, remove a sign-in code from the address. */
const callback = readSignInCallback();

applyTheme();
resumeSession();
if (callback) void completeSignIn(callback);

function Console() {
  const { open, message, retry } = useObservable(session);
  const isWaiting = useObservable(isSigningIn);
  // A link that is opened in this tab changes only the fragment.
  useEffect(() => {
    const listener = () => {
      const next = readSignInCallback();
      if (next) void completeSignIn(next);
    };
    addEventListener('hashchange', listener);
    return () => removeEventListener('hashchange', listener);
  }, []);
  // The key discards everything that another session has read.
  if (open) return <Layout key={open.token} pages={PAGES} isSigningIn={isWaiting} />;
  return isWaiting ? <Loading /> : <SignInPage message={message} retry={retry} />;
}

const root = document.getElementById('console');
if (root) {
  root.textContent = '';
  render(<Console />, root);
}
