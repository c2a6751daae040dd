import { Fault } from '../domain/fault.ts';
import { LIMITS } from '../domain/limits.ts';

/**
 * Reads a body of bounded size and time as text. Nothing over the bound is ever held in memory. Throws Fault
 * `body_too_large`, `request_timeout`, or `malformed` where the bytes are not UTF-8.
 */
export async function readText(request: Request): Promise<string> {
  const announced = Number(request.headers.get('content-length') ?? 0);
  if (announced > LIMITS.bodyBytesMax) throw new Fault('body_too_large');
  if (!request.body) return '';
  const reader = request.body.getReader();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    reader.cancel('too slow').catch(() => undefined);
  }, LIMITS.bodyMsMax);
  try {
    const bytes = await collect(reader);
    if (isLate) throw new Fault('request_timeout');
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    // What is no fault of ours is the caller's: bytes that are no UTF-8, or a connection given up half-way.
    throw error instanceof Fault ? error : new Fault('malformed', [], error);
  } finally {
    clearTimeout(timer);
  }
}

type Reader = Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>;

async function collect(reader: Reader): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks);
    size += value.length;
    if (size > LIMITS.bodyBytesMax) {
      await reader.cancel('too large');
      throw new Fault('body_too_large');
    }
    chunks.push(value);
  }
}
