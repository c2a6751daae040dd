import { callApi } from '../api/call_api.ts';
import { type Api, type ApiDocument, apiOf } from './document.ts';

let known: Promise<Api> | undefined;

/** Fetches the document once per page load. Throws Problem, and can then be retried. */
export function readApi(): Promise<Api> {
  known ??= callApi<ApiDocument>({ path: 'openapi.json' }).then(
    ({ body }) => apiOf(body),
    (error: unknown) => {
      known = undefined;
      throw error;
    },
  );
  return known;
}
