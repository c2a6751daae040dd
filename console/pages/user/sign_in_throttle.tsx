import { callApi } from '../../api/call_api.ts';
import { pathOf, RESOURCES } from '../../api/records.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { ActionError, useAction } from '../../form/use_action.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { type Link, nameOf } from './load_user.ts';

interface Throttle {
  readonly data: { readonly throttled_until: string | null };
}

interface SignInThrottleProps {
  readonly realm: string;
  readonly user: string;
  /** Of a password. */
  readonly link: Link;
}

/** Until when devices that never signed in are refused, after too many wrong passwords, and a button that ends it. */
export function SignInThrottle({ realm, user, link }: SignInThrottleProps) {
  const key = [realm, user, link.record.id];
  const path = `${pathOf(RESOURCES.passwordProfileInfos, key)}/sign-in-throttle`;
  const scope = `${RESOURCES.users.scope}:write`;
  const { answer, reload } = useFetch((signal) => callApi<Throttle>({ path, scope, signal }), [path]);
  const { isBusy, problem, run } = useAction(reload);
  const until = answer?.body.data.throttled_until;
  if (!until) return null;
  const lift = () => run(async () => void (await callApi({ method: 'POST', path: `${path}/lift`, scope })));
  return (
    <div class="note note-warn" role="status">
      <Icon name="warning" />
      <div class="stack-tight">
        <p>
          Too many wrong passwords: <UntrustedText text={nameOf(link)} isIdentifier /> is throttled without a
          device token until <Timestamp at={until} />. Devices that signed in before are not.
        </p>
        <button type="button" class="button" disabled={isBusy} onClick={lift}>
          Check passwords again
        </button>
        <ActionError problem={problem} />
      </div>
    </div>
  );
}
