import { callApi } from './call_api.ts';

/** The sign-in methods of this service. */
export interface SignInMethods {
  /** The command that prints a sign-in link. */
  readonly link: string;
  readonly providers: readonly { readonly name: string }[];
}

export async function readSignInMethods(): Promise<SignInMethods> {
  return (await callApi<{ data: SignInMethods }>({ path: 'console/ways' })).body.data;
}
