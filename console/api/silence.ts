/** Calls something off when nothing is heard for too long. */
export interface Silence {
  /** Aborted with what was given to it, or as soon as the one that was asked for is, with the reason of that. */
  readonly signal: AbortSignal;
  /** Something came: the time begins anew. */
  heard(): void;
  /** It is over, however it ended. */
  end(): void;
}

/** `why` is what `signal` is aborted with after so many milliseconds in which nothing was heard. */
export function silence(milliseconds: number, why: Error, signal?: AbortSignal): Silence {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = () => clearTimeout(timer);
  const heard = () => {
    end();
    timer = setTimeout(() => controller.abort(why), milliseconds);
  };
  heard();
  return {
    signal: signal ? AbortSignal.any([signal, controller.signal]) : controller.signal,
    heard,
    end,
  };
}

/** The same body; `heard` is told of each piece that comes. */
export function overheard(body: ReadableStream<Uint8Array>, heard: () => void): ReadableStream<Uint8Array> {
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(piece, controller) {
        heard();
        controller.enqueue(piece);
      },
    }),
  );
}
