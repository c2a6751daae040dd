import { ask } from '../api/call_api.ts';
import { type Api, type ApiDocument, apiOf } from './document.ts';

let known: Promise<Api> | undefined;

/** Reads the document once a page. Throws Problem, and may then be asked again. */
export function readApi(): Promise<Api> {
  known ??= ask<ApiDocument>({ path: 'openapi.json' }).then(
    ({ body }) => apiOf(body),
    (error: unknown) => {
      known = undefined;
      throw error;
    },
  );
  return known;
}
