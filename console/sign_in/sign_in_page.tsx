import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type Problem, toProblem } from '../api/problem.ts';
import { type SignInMethods as Methods, readSignInMethods } from '../api/sign_in_methods.ts';
import { useFetch } from '../api/use_fetch.ts';
import { Brand } from '../layout/shell.tsx';
import { ThemeSwitch } from '../layout/theme.tsx';
import { useObservable } from '../observable.ts';
import { Announcer } from '../parts/announcer.tsx';
import { CopyButton } from '../parts/copy.tsx';
import { Loaded, ProblemNote } from '../parts/notices.tsx';
import { Timestamp } from '../parts/timestamp.tsx';
import { UntrustedText } from '../parts/untrusted_text.tsx';
import { adoptSession, closeSession, endOf, type SessionState, SHARED_LABEL } from '../session/session.ts';
import { offers, UNSHARED_REASON } from '../session/tabs.ts';
import { goToProvider, WrongAddress } from './sign_in.ts';

type SignInState = Pick<SessionState, 'message' | 'retry'>;
type EndedSession = NonNullable<SessionState['ended']>;

/** The sign-in page. */
export function SignInPage(state: SignInState) {
  return (
    <div class="sign-in">
      <main class="card sign-in-card">
        <SignInMethods {...state} />
      </main>
      <footer class="sign-in-foot">
        <ThemeSwitch />
        <a href="docs">API reference</a>
      </footer>
      <Announcer />
    </div>
  );
}

/** The sign-in after a session has ended. It covers the page of the session, which stays as it is. */
export function SignInDialog({ ended, ...state }: SignInState & { readonly ended: EndedSession }) {
  const element = useRef<HTMLDialogElement>(null);
  const isMounted = useRef(true);
  // Before it is drawn: until then what is typed goes to the form below.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    // Escape would also close the form below it: browsers close dialogs together that were not opened by the user.
    addEventListener('keydown', ignoreEscape, { capture: true });
    return () => {
      removeEventListener('keydown', ignoreEscape, { capture: true });
      isMounted.current = false;
      dialog?.close();
    };
  }, []);
  const reopen = () => isMounted.current && element.current?.showModal();
  return (
    <dialog ref={element} class="sign-in sign-in-over" aria-label="Sign in to the console" onClose={reopen}>
      <div class="card sign-in-card">
        <SignInMethods {...state} ended={ended}>
          {ended.method === 'link' && ended.label === SHARED_LABEL ? (
            <p>
              The next sign-in discards what you have typed: a link without --label may be of another person.
            </p>
          ) : (
            <p>
              What you have typed is kept in this tab for <UntrustedText text={ended.label} />: sign in here
              to continue. It is discarded if someone else signs in.
            </p>
          )}
        </SignInMethods>
        <button type="button" class="text-button" onClick={() => closeSession('You have signed out.')}>
          Discard what was typed
        </button>
      </div>
      <Announcer isInDialog />
    </dialog>
  );
}

function ignoreEscape(event: KeyboardEvent): void {
  if (event.key === 'Escape') event.preventDefault();
}

interface SignInMethodsProps extends SignInState {
  readonly ended?: EndedSession;
  readonly children?: ComponentChildren;
}

function SignInMethods({ message, retry, ended, children }: SignInMethodsProps) {
  const methods = useFetch(readSignInMethods, []);
  return (
    <>
      <div class="brand">
        <Brand />
        <span>authrealm</span>
      </div>
      <h1>Sign in to the console</h1>
      {message !== undefined && (
        <p class="note" role="status">
          {message}
        </p>
      )}
      {children}
      <SessionsOfTabs />
      {retry && (
        <button type="button" class="button button-main button-wide" onClick={retry}>
          Retry sign-in
        </button>
      )}
      <Loaded fetched={methods}>
        {({ link, providers }) => (
          <>
            {providers.length > 0 && <Providers providers={providers} />}
            <LinkInstructions command={commandFor(link, ended)} isAlone={providers.length === 0} />
          </>
        )}
      </Loaded>
    </>
  );
}

/** The sessions of other tabs to choose from; or why there are none. */
function SessionsOfTabs() {
  const sessions = useObservable(offers);
  if (UNSHARED_REASON !== undefined)
    return (
      <p class="faint small">
        Each tab needs a sign-in of its own, because the address of this console {UNSHARED_REASON}.
      </p>
    );
  return (
    <>
      {[...sessions.values()].map((stored) => (
        <button
          key={stored.id}
          type="button"
          class="button button-main button-wide"
          onClick={() => adoptSession(stored)}
        >
          <span>
            Continue as <UntrustedText text={stored.grant.label} /> until <Timestamp at={endOf(stored)} />
          </span>
        </button>
      ))}
    </>
  );
}

/** The command that prints a link; after a session of a link with its label and rights, without which none continues it. */
function commandFor(command: string, ended: EndedSession | undefined): string {
  if (ended?.method !== 'link') return command;
  const { scopes, label, realms } = ended;
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const limit = realms === '*' ? '' : ` --realm ${quoted(realms.join(' '))}`;
  const rights = `--scope ${quoted([...scopes].join(' '))}${limit}`;
  return command.replace('--role support', () => `${rights} --label ${quoted(label)}`);
}

function Providers({ providers }: Pick<Methods, 'providers'>) {
  const [problem, setProblem] = useState<Problem>();
  const [address, setAddress] = useState<string>();
  const redirect = (name: string) => {
    goToProvider(name).catch((error: unknown) => {
      if (error instanceof WrongAddress) setAddress(error.address);
      else setProblem(toProblem(error));
    });
  };
  return (
    <div class="stack">
      {providers.map(({ name }) => (
        <button
          key={name}
          type="button"
          class="button button-main button-wide"
          onClick={() => redirect(name)}
        >
          Sign in with&nbsp;
          <UntrustedText text={name} />
        </button>
      ))}
      {problem && <ProblemNote problem={problem} />}
      {address !== undefined && (
        <p class="note">
          Open this service at its configured address: <a href={address}>{address}</a>
        </p>
      )}
    </div>
  );
}

function LinkInstructions({ command, isAlone }: { readonly command: string; readonly isAlone: boolean }) {
  const words = (
    <div class="stack">
      <p>
        Run this command on the machine that runs the service. It prints a link that works once, within one
        minute. Open it in this tab: paste it into the address bar. Or ask an administrator for an invitation.
      </p>
      <div class="command">
        <code>{command}</code>
        <CopyButton text={command} what="the command" />
      </div>
    </div>
  );
  if (isAlone) return words;
  return (
    <details class="way">
      <summary>With a link from the command line</summary>
      {words}
    </details>
  );
}
