import { useId, useState } from 'preact/hooks';
import { type Problem, toProblem } from '../api/problem.ts';
import { useFetch } from '../api/use_fetch.ts';
import { Brand } from '../layout/shell.tsx';
import { ThemeSwitch } from '../layout/theme.tsx';
import { Announcer } from '../parts/announcer.tsx';
import { CopyButton } from '../parts/copy.tsx';
import { Icon } from '../parts/icon.tsx';
import { Loaded, ProblemNote } from '../parts/notices.tsx';
import { UntrustedText } from '../parts/untrusted_text.tsx';
import type { SessionState } from '../session/session.ts';
import {
  readSignInMethods,
  redirectToProvider,
  type SignInMethods,
  signInAsClient,
  WrongAddress,
} from './sign_in.ts';

const COMMAND = 'authrealm console link --scope "users:read profile-infos:read profiles:read realms:read"';

/** The sign-in page. */
export function SignInPage({ message, retry }: Pick<SessionState, 'message' | 'retry'>) {
  const methods = useFetch(readSignInMethods, []);
  return (
    <div class="sign-in">
      <main class="card sign-in-card">
        <div class="sign-in-brand">
          <Brand />
          <span>authrealm</span>
        </div>
        <h1>Sign in to the console</h1>
        {message !== undefined && (
          <p class="note" role="status">
            {message}
          </p>
        )}
        {retry && (
          <button type="button" class="button button-main button-wide" onClick={retry}>
            Retry sign-in
          </button>
        )}
        <Loaded fetched={methods}>
          {({ link, providers, client_credentials }) => (
            <>
              {providers.length > 0 && <Providers providers={providers} />}
              {client_credentials && <ClientForm />}
              {link && <LinkInstructions isAlone={providers.length === 0 && !client_credentials} />}
            </>
          )}
        </Loaded>
      </main>
      <footer class="sign-in-foot">
        <ThemeSwitch />
        <a href="docs">API reference</a>
      </footer>
      <Announcer />
    </div>
  );
}

function Providers({ providers }: Pick<SignInMethods, 'providers'>) {
  const [problem, setProblem] = useState<Problem>();
  const [address, setAddress] = useState<string>();
  const redirect = (name: string) => {
    redirectToProvider(name).catch((error: unknown) => {
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

function LinkInstructions({ isAlone }: { readonly isAlone: boolean }) {
  const words = (
    <div class="stack">
      <p>
        Run this command on the machine that runs the service. It prints a link that works once, within one
        minute. Open it in this browser.
      </p>
      <div class="command">
        <code>{COMMAND}</code>
        <CopyButton text={COMMAND} what="the command" />
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

function ClientForm() {
  const [id, setId] = useState('');
  const [secret, setSecret] = useState('');
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const fields = useId();
  const submit = (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    signInAsClient(id.trim(), secret)
      .catch((error: unknown) => {
        const { kind, message } = toProblem(error);
        setProblem(kind === 'ended' ? 'Wrong client ID or secret.' : message);
      })
      .finally(() => setBusy(false));
  };
  return (
    <form class="form" onSubmit={submit}>
      <div class="field">
        <label for={`${fields}-id`}>Client ID</label>
        <input
          id={`${fields}-id`}
          value={id}
          required
          autocomplete="username"
          spellcheck={false}
          onInput={({ currentTarget }) => setId(currentTarget.value)}
        />
      </div>
      <div class="field">
        <label for={`${fields}-secret`}>Client secret</label>
        <input
          id={`${fields}-secret`}
          type="password"
          value={secret}
          required
          autocomplete="current-password"
          onInput={({ currentTarget }) => setSecret(currentTarget.value)}
        />
        <p class="hint">Stored only in the memory of this page: a reload signs you out.</p>
      </div>
      {problem !== undefined && (
        <p class="note note-danger" role="alert">
          <Icon name="warning" /> {problem}
        </p>
      )}
      <button type="submit" class="button button-main button-wide" disabled={isBusy}>
        Sign in
      </button>
    </form>
  );
}
