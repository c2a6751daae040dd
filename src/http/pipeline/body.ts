import { Fault, type FaultCode } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import { jsonErrorPlace } from '../../model/text/json_error.ts';
import { isJsonObject, type JsonObject } from '../../model/text/json_object.ts';
import { withTimeout } from '../../model/timeout.ts';
import type { Stage } from './call.ts';

/** Parameters are ignored: JSON is UTF-8 (RFC 8259, 8.1). */
const JSON_MEDIA = /^application\/json[ \t]*(?:;.*)?$/i;

/** Reads the body of an authorized request; others are not buffered. Throws as `readText` does. */
export const readBody: Stage = async (call) => {
  const type = call.request.headers.get('content-type');
  if (type !== null && call.request.body && !JSON_MEDIA.test(type.trim()))
    throw new Fault('unsupported_media_type');
  call.body = await readText(call.request);
  return undefined;
};

/**
 * Parses a body into its object. Returns Fault `malformed` if it is not JSON, `invalid` if it is not an object. The last of
 * duplicate members counts, as in JSON.parse.
 */
export function parseDocument(body: string): JsonObject | Fault {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return malformed(body === '' ? 'is empty' : `is not JSON at ${jsonErrorPlace(body)}`);
  }
  return isJsonObject(value) ? value : notAnObject('body', value);
}

/** As `parseDocument`, but throws the Fault. */
export function documentOf(body: string): JsonObject {
  const document = parseDocument(body);
  if (document instanceof Fault) throw document;
  return document;
}

/** The `data` of a body. Throws as `documentOf` does, and Fault `invalid` if it has no `data`. */
export function dataOf(body: string): JsonObject {
  const { data } = documentOf(body);
  if (isJsonObject(data)) return data;
  throw notAnObject('data', data);
}

function malformed(rule: string): Fault {
  return new Fault('malformed', [{ field: 'body', rule }]);
}

function notAnObject(field: string, value: unknown): Fault {
  return new Fault('invalid', [
    { field, rule: value === undefined ? 'is missing' : 'must be a JSON object' },
  ]);
}

/**
 * Reads a body as text, with limits of size and time. At most LIMITS.bodyBytesMax are held in memory. Throws Fault
 * `body_too_large`, `request_timeout`, or `malformed` where the bytes are not UTF-8.
 */
export async function readText(request: Request): Promise<string> {
  const deadline = performance.now() + LIMITS.bodyMsMax;
  const parts: Uint8Array[] = [];
  const bytesMax = LIMITS.bodyBytesMax;
  for await (const part of partsOf(request, bytesMax, 'body_too_large', deadline)) parts.push(part);
  return decoded(Buffer.concat(parts));
}

/**
 * The parts of a body, by default of a file, as they arrive: the caller sends no faster than they are taken. `deadline`: of all, as
 * `performance.now()`. Throws Fault `tooLarge`, `request_timeout`, or `malformed` if the connection closed before the end.
 */
export async function* partsOf(
  request: Request,
  bytesMax: number = LIMITS.uploadBytesMax,
  tooLarge: FaultCode = 'upload_too_large',
  deadline = Number.POSITIVE_INFINITY,
): AsyncGenerator<Uint8Array> {
  const announced = Number(request.headers.get('content-length'));
  if (announced > bytesMax) throw new Fault(tooLarge);
  if (!request.body) return;
  const reader = request.body.getReader();
  const stop = () => {
    throw new Fault('request_timeout');
  };
  let size = 0;
  try {
    for (;;) {
      const ms = Math.min(deadline - performance.now(), LIMITS.transferIdleMsMax);
      const { done, value } = await withTimeout(reader.read(), ms, stop);
      if (done) break;
      size += value.length;
      if (size > bytesMax) throw new Fault(tooLarge);
      yield value;
    }
    const isChunked = request.headers.has('transfer-encoding');
    if (size < announced || (isChunked && (await isClosedAfterTask(request)))) throw new Fault('malformed');
  } catch (error) {
    // Any other error comes from the caller: it closed the connection.
    throw error instanceof Fault ? error : new Fault('malformed', [], error);
  } finally {
    reader.cancel('not needed').catch(() => undefined);
  }
}

/** Whether the connection of a request is closed when the runtime has parsed all bytes that have arrived. */
export async function isClosedAfterTask({ signal }: Request): Promise<boolean> {
  await new Promise((resolve) => setImmediate(resolve));
  return signal.aborted;
}

/** How long a response waits to see whether a body that it did not need has arrived. */
const UNREAD_BODY_MS = 20;

/** Whether the whole body of an answered request has arrived. Reads a body that the response did not need. */
export async function isBodyComplete(request: Request, { status }: Response): Promise<boolean> {
  if (request.bodyUsed) return status !== 413 && status !== 408;
  const isRead = readText(request).then(
    () => true,
    () => false,
  );
  return Promise.race([isRead, Bun.sleep(UNREAD_BODY_MS).then(() => false)]);
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw malformed('is not UTF-8');
  }
}
