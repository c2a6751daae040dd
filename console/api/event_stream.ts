/** One message of a stream of events. */
export interface Message {
  /** Empty where none was ever told. */
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/**
 * The messages of a body, as they come (Server-Sent Events, https://html.spec.whatwg.org/multipage/server-sent-events.html).
 * What is cut off at the end is no message. Throws what reading the body throws.
 */
export async function* messagesIn(body: ReadableStream<Uint8Array>): AsyncGenerator<Message> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let rest = '';
  let id = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      // A return at the end of what came may be the first half of a line's end.
      const blocks = (rest + value).replace(/\r\n|\r(?!$)/g, '\n').split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const message = messageIn(block, id);
        id = message.id;
        if (message.data !== undefined) yield { ...message, data: message.data };
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function messageIn(block: string, idBefore: string) {
  const lines = block.split('\n').map((line) => {
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    return { name, value };
  });
  const last = (wanted: string) => lines.findLast(({ name }) => name === wanted)?.value;
  const data = lines.filter(({ name }) => name === 'data').map(({ value }) => value);
  return {
    id: last('id') ?? idBefore,
    event: last('event') ?? 'message',
    data: data.length === 0 ? undefined : data.join('\n'),
  };
}
