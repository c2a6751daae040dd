import { callApi } from '../../api/call_api.ts';
import { pathOf, RESOURCES } from '../../api/records.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { useAction } from '../../form/use_action.tsx';
import { useObservable } from '../../observable.ts';
import { announce } from '../../parts/announcer.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Loaded, ProblemNote } from '../../parts/notices.tsx';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasScope, session } from '../../session/session.ts';
import { nameOf, type UserWithLinks } from './load_user.ts';

export const STATE_SCOPE = 'history:read';
const LIFT_SCOPE = 'sign-in-throttles:write';

interface State {
  readonly usernames: readonly {
    readonly id: string;
    readonly has_password: boolean;
    readonly throttles: readonly { readonly attempts: string; readonly throttled_until: string }[];
  }[];
  readonly are_sign_ins_logged: boolean;
  readonly sign_ins: readonly { readonly at: string; readonly link_id: string; readonly mechanism: string }[];
}

/** Which attempts are refused. */
const REFUSED: Readonly<Record<string, string>> = {
  without_device: 'without a device token',
  network: 'on a network',
  device: 'on a device that signed in before',
};

interface SignInStateProps {
  readonly realm: string;
  readonly loaded: UserWithLinks;
}

/** Why a user cannot sign in, in sentences, and the last sign-ins. */
export function SignInState({ realm, loaded: { user, links } }: SignInStateProps) {
  const key = [realm, user.record.id];
  const path = `${pathOf(RESOURCES.users, key)}/sign-in-state`;
  const read = async (signal?: AbortSignal) =>
    (await callApi<{ data: State }>({ path, scope: STATE_SCOPE, signal })).body.data;
  const fetched = useFetch(read, [path, user.etag]);
  const mayLift = hasScope(useObservable(session), LIFT_SCOPE);
  const { isBusy, problem, run } = useAction(() => announce('Passwords are checked again.'));
  const lift = async (id: string) => {
    const liftPath = `${pathOf(RESOURCES.passwordProfileInfos, [...key, id])}/sign-in-throttle/lift`;
    await callApi({ method: 'POST', path: liftPath, scope: LIFT_SCOPE });
    fetched.setAnswer(await read());
  };
  const textOf = (id: string) => {
    const link = links.find(({ record }) => record.id === id);
    return <UntrustedText text={link ? nameOf(link) : id} isIdentifier />;
  };
  return (
    <Loaded fetched={fetched}>
      {({ usernames, sign_ins, are_sign_ins_logged }) => (
        <>
          {usernames.map(({ id, has_password, throttles }) => (
            <div key={id} class="stack-tight">
              <p>
                {textOf(id)} has{' '}
                {has_password ? 'a password.' : 'no password that a sign-in accepts: set one.'}
              </p>
              {throttles.map(({ attempts, throttled_until }) => (
                <p key={attempts} class="note note-warn" role="status">
                  <Icon name="warning" />
                  <span>
                    Too many wrong passwords: {textOf(id)} is throttled {REFUSED[attempts]} until{' '}
                    <Timestamp at={throttled_until} />.
                  </span>
                </p>
              ))}
              {throttles.length > 0 && mayLift && (
                <button type="button" class="button" disabled={isBusy} onClick={() => run(() => lift(id))}>
                  Check passwords again (three times an hour)
                </button>
              )}
            </div>
          ))}
          {problem && <ProblemNote problem={problem} />}
          <h3>Last sign-ins in the log</h3>
          {!are_sign_ins_logged && <p>Not logged: start the service with --log-sign-ins.</p>}
          {are_sign_ins_logged && sign_ins.length === 0 && <p>None.</p>}
          <ol class="history">
            {sign_ins.map(({ at, link_id, mechanism }) => (
              <li key={`${at} ${link_id}`}>
                <Timestamp at={at} />
                <span>
                  {mechanism === 'oidc' ? 'Through a provider' : 'With a password'}: {textOf(link_id)}
                </span>
              </li>
            ))}
          </ol>
        </>
      )}
    </Loaded>
  );
}
