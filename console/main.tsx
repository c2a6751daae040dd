import { render } from 'preact';
import { Layout } from './layout/layout.tsx';
import { applyTheme } from './layout/theme.tsx';
import { useObservable } from './observable.ts';
import { PAGES } from './pages/pages.ts';
import { Loading } from './parts/notices.tsx';
import { resumeSession, session } from './session/session.ts';
import { askTabs, joinTabs } from './session/tabs.ts';
import { startRenewal } from './sign_in/renewal.ts';
import { completeSignIn, isSigningIn, readSignInCallback } from './sign_in/sign_in.ts';
import { SignInDialog, SignInPage } from './sign_in/sign_in_page.tsx';

/** First of all, remove a sign-in code from the address. */
const callback = readSignInCallback();

applyTheme();
joinTabs();
resumeSession();
startRenewal();
if (callback) {
  void completeSignIn(callback);
} else if (!session.get().open) {
  isSigningIn.set(true);
  void askTabs().finally(() => isSigningIn.set(false));
}
// A link that is opened in this tab changes only the fragment.
addEventListener('hashchange', () => {
  const next = readSignInCallback();
  if (next) void completeSignIn(next);
});

function Console() {
  const { open, ended, page, message, retry } = useObservable(session);
  const isWaiting = useObservable(isSigningIn);
  if (!open && !ended) return isWaiting ? <Loading /> : <SignInPage message={message} retry={retry} />;
  // The key discards everything that another user has read and typed.
  return (
    <>
      <Layout key={page} pages={PAGES} isSigningIn={isWaiting} />
      {!open && ended && <SignInDialog message={message} retry={retry} ended={ended} />}
    </>
  );
}

const root = document.getElementById('console');
if (root) {
  root.textContent = '';
  render(<Console />, root);
}
