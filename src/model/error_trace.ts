/** Loggable parts of an unexpected error: its type and location. A message may hold a value of the caller. */
export interface ErrorTrace {
  readonly cause: string;
  readonly frames: readonly string[];
}

const FRAMES_MAX = 8;

export function errorTrace(error: unknown): ErrorTrace {
  if (!(error instanceof Error)) return { cause: typeof error, frames: [] };
  const code = (error as { code?: unknown }).code;
  const frames = (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at '));
  return {
    cause: typeof code === 'string' ? code : error.name,
    frames: frames.slice(0, FRAMES_MAX).map((line) => line.trim()),
  };
}

/** An error of another process, with the same trace as the one that was thrown there. */
export function errorFromTrace({ cause, frames }: ErrorTrace): Error {
  const error = Object.assign(new Error('in a worker process'), { code: cause });
  error.stack = frames.map((frame) => `    ${frame}`).join('\n');
  return error;
}
