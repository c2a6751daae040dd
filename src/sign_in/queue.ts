import { overloaded } from '../model/fault.ts';
import { wideSubnet } from '../model/ip_address.ts';
import type { SignInAttempt } from './budgets.ts';

/** Places in the queue of a process, those of the passwords that are being checked included. One more attempt is answered 503. */
export const SIGN_IN_PLACES_MAX = 64;
/** Of these, the places for attempts without a valid device token. */
export const STRANGER_PLACES_MAX = 48;
/** Of these, the places for attempts of a client without addresses. */
export const UNADDRESSED_PLACES_MAX = 32;
/** Of the places for attempts without a valid device token, those for sign-ups. */
export const SIGN_UP_PLACES_MAX = 16;
/** Places of a name with a device, and as many without. */
const NAME_PLACES_MAX = 2;
/** Places of an IPv4 address or of a /48 with a device, and as many without. */
const NETWORK_PLACES_MAX = 4;
/** Time in the queue; then 503. With the longest check it is less than `answerMsMax`. */
const WAIT_MS_MAX = 2_500;

/** An attempt in the queue, with the values by which places are counted. */
interface Place {
  readonly hasDevice: boolean;
  readonly isSignUp: boolean;
  readonly name: string;
  /** Undefined without an address. */
  readonly network: string | undefined;
  readonly clientId: string;
  readonly waitsUntil: number;
  isWorking: boolean;
  readonly start: () => void;
  readonly giveUp: () => void;
}

export type SignInQueue = ReturnType<typeof openSignInQueue>;

/**
 * Orders the password checks and sign-ups of a process, which take a processor for a tenth of a second each
 * (docs/guides/password-guessing.md#queue). One runs at a time, so at most one wrong password is not counted yet.
 */
export function openSignInQueue(monotonic: () => number) {
  /** In the order of arrival. */
  let places: readonly Place[] = [];
  /** Whether the last check was one with a device: then one without is next, so that no number of devices keeps the others out. */
  let hadDevice = false;

  const count = (of: (place: Place) => boolean): number => places.filter(of).length;

  function hasPlace({ hasDevice, isSignUp, name, network, clientId }: Place): boolean {
    const ofClass = (of: (place: Place) => boolean) =>
      count((place) => place.hasDevice === hasDevice && of(place));
    if (places.length >= SIGN_IN_PLACES_MAX) return false;
    if (!hasDevice && ofClass(() => true) >= STRANGER_PLACES_MAX) return false;
    if (isSignUp && count((place) => place.isSignUp) >= SIGN_UP_PLACES_MAX) return false;
    if (ofClass((place) => place.name === name) >= NAME_PLACES_MAX) return false;
    return network === undefined
      ? count((place) => place.clientId === clientId && !place.network) < UNADDRESSED_PLACES_MAX
      : ofClass((place) => place.network === network) < NETWORK_PLACES_MAX;
  }

  function leave(gone: Place): void {
    places = places.filter((place) => place !== gone);
  }

  function dispatch(): void {
    const now = monotonic();
    for (const place of places.filter(({ isWorking, waitsUntil }) => !isWorking && waitsUntil <= now)) {
      leave(place);
      place.giveUp();
    }
    if (places.some(({ isWorking }) => isWorking)) return;
    const next = places.find(({ hasDevice }) => hasDevice !== hadDevice) ?? places[0];
    if (!next) return;
    next.isWorking = true;
    hadDevice = next.hasDevice;
    next.start();
  }

  return {
    /**
     * Runs a check, or a sign-up, in its turn: attempts with a device and without alternately, otherwise in the order of arrival. Rejects with Fault
     * `overloaded`, without running it, if there is no place or the wait is too long.
     */
    run<T>(attempt: SignInAttempt, check: () => Promise<T>, isSignUp = false): Promise<T> {
      const { realmId, profileId, usernameKey, address, clientId, device } = attempt;
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      const place: Place = {
        hasDevice: device !== undefined,
        isSignUp,
        // A sign-up takes no place from sign-ins by the same name.
        name: `${isSignUp ? 'new ' : ''}${realmId} ${profileId} ${usernameKey}`,
        network: address && `${realmId} ${profileId} ${wideSubnet(address)}`,
        clientId,
        waitsUntil: monotonic() + WAIT_MS_MAX,
        isWorking: false,
        start() {
          check()
            .then(resolve, reject)
            .finally(() => {
              leave(place);
              dispatch();
            });
        },
        giveUp: () => reject(overloaded('DEADLINE_EXCEEDED')),
      };
      if (!hasPlace(place)) return Promise.reject(overloaded('QUEUE_FULL'));
      places = [...places, place];
      dispatch();
      return promise;
    },
    figures() {
      const working = count(({ isWorking }) => isWorking);
      return { waiting: places.length - working, working };
    },
  };
}
