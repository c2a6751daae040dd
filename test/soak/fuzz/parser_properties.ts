import fc from 'fast-check';
import { searchSchema } from '../../../src/http/openapi/schemas.ts';
import { documentOf } from '../../../src/http/pipeline/body.ts';
import { preconditionReader } from '../../../src/http/pipeline/precondition.ts';
import { readDocument } from '../../../src/http/pipeline/reading.ts';
import { Fault, type FaultCode } from '../../../src/model/fault.ts';
import { parseFilter } from '../../../src/model/filter/filter.ts';
import type { Revision } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import { RESOURCES } from '../../../src/model/resources.ts';
import { isVisibleAscii } from '../../../src/model/text/visible_ascii.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { openLineParser } from '../../../src/ops/transfer/import_line.ts';
import { splitLines } from '../../../src/ops/transfer/line_reader.ts';

/** A property that must hold for every input of a parser. It is checked `runs` times; a failure names its seed. */
export interface Property {
  readonly name: string;
  check(runs: number, seed: number): Promise<void>;
}

function property<T>(
  name: string,
  arbitrary: fc.Arbitrary<T>,
  holds: (value: T) => void | Promise<void>,
): Property {
  return {
    name,
    check: (numRuns, seed) =>
      fc.assert(
        fc.asyncProperty(arbitrary, async (value) => holds(value)),
        { numRuns, seed },
      ),
  };
}

function assert(isSo: boolean, what: string): void {
  if (!isSo) throw new Error(what);
}

/** No input may take a parser longer: inputs are bounded in bytes, not in time. */
const MS_MAX = 250;

/** Returns the parsed value, or undefined for a fault with one of these codes. Any other error is a bug. */
function parseOrRefuse<T>(read: () => T, ...codes: readonly FaultCode[]): T | undefined {
  const start = performance.now();
  try {
    return read();
  } catch (error) {
    if (error instanceof Fault && codes.includes(error.code)) return undefined;
    throw error;
  } finally {
    assert(performance.now() - start < MS_MAX, 'the parser took too long');
  }
}

const anything = fc.string({ unit: 'binary', maxLength: 200 });
const FILTERABLES = RESOURCES.flatMap(({ filterables }) => (filterables ? [filterables] : []));

/** Pieces of the grammar, in any order and number. */
const filterText = fc
  .array(
    fc.oneof(
      {
        weight: 5,
        arbitrary: fc.constantFrom(
          'eq(',
          'in(',
          'like(',
          'gt(',
          'is_null(',
          ')',
          ',',
          ':',
          '|',
          '(',
          '"',
          "'",
          '*',
        ),
      },
      {
        weight: 3,
        arbitrary: fc.constantFrom(
          'name',
          'email',
          'id',
          'created_at',
          'subject',
          '2026-01-31T09:00:00.000Z',
          '%',
        ),
      },
      { weight: 2, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }) },
      { weight: 1, arbitrary: anything },
    ),
    { maxLength: 60 },
  )
  .map((pieces) => pieces.join(''));

const deep = fc
  .tuple(fc.constantFrom('(', 'eq(name,', '"', '*', ':', '((a|'), fc.nat(LIMITS.filterBytesMax))
  .map(([piece, times]) => piece.repeat(times).slice(0, LIMITS.filterBytesMax));

const jsonText = fc.oneof(
  fc.json({ maxDepth: 4 }),
  anything,
  fc.tuple(fc.json(), fc.nat(200)).map(([text, at]) => text.slice(0, at)),
  fc
    .tuple(fc.constantFrom('[', '{"a":', '[{"a":'), fc.nat(3_000))
    .map(([piece, times]) => piece.repeat(times)),
  fc.tuple(fc.nat(140), fc.boolean()).map(([depth, isEscaped]) => {
    const inside = isEscaped ? '"\\"]}[{"' : '1';
    return `${'['.repeat(depth)}${inside}${']'.repeat(depth)}`;
  }),
);

const TYPES = RESOURCES.map(({ type }) => type);
const NAMES = [
  ...new Set(
    RESOURCES.flatMap(({ members, inputs = {} }) => [...Object.keys(members), ...Object.keys(inputs)]),
  ),
];
const uuid = fc.uuid();

/** Import lines that are almost valid, and some that are valid. */
const line = fc
  .record(
    {
      type: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...TYPES) }, fc.jsonValue()),
      id: fc.oneof({ weight: 9, arbitrary: uuid }, fc.jsonValue()),
      realm_id: uuid,
      user_authentication_info_id: uuid,
      meta: fc.oneof(
        fc.jsonValue(),
        fc.record({
          created_at: fc.oneof(
            fc.string(),
            fc.date({ noInvalidDate: true }).map((at) => at.toISOString()),
          ),
        }),
      ),
      relationships: fc.jsonValue(),
    },
    { requiredKeys: ['type', 'id'] },
  )
  .chain((head) =>
    fc
      .dictionary(
        fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...NAMES) }, anything),
        fc.oneof(anything, uuid, fc.jsonValue()),
      )
      .map((more) => JSON.stringify({ ...more, ...head })),
  );

const bytesOf = (text: string) => new TextEncoder().encode(text);
const readLine = openLineParser({
  clock: systemClock,
  isUpsert: false,
  isStrict: false,
  installation: 'here',
  seal: () => new Uint8Array(),
  open: () => '',
  signerKeyIds: new Set(),
});

const etagOf = ({ revision }: { readonly revision: Revision }) => `"${revision}-AAAAAAAA"`;
const requiredRevision = preconditionReader(etagOf);
const revision = fc.stringMatching(/^[0-9a-f]{16}$/) as fc.Arbitrary<Revision>;
const foreign = fc.constantFrom('"x"', '""', 'W/"x"', '', '"', '*x', '"0123456789abcdef-BBBBBBBB"');

function objectByRuntime(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return value instanceof Object && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export const PROPERTIES: readonly Property[] = [
  property('a filter is parsed or rejected', fc.oneof(filterText, deep, anything), (text) => {
    for (const filterables of FILTERABLES)
      parseOrRefuse(() => parseFilter(text, filterables), 'malformed_filter');
  }),
  property('an object is parsed as JSON.parse does, and other JSON is rejected', jsonText, (text) => {
    const read = parseOrRefuse(() => documentOf(text), 'malformed', 'invalid');
    assert(Bun.deepEquals(read, objectByRuntime(text)), 'the parsed value differs');
  }),
  property('a search is parsed or rejected', jsonText, (text) => {
    parseOrRefuse(() => readDocument(searchSchema, text), 'malformed', 'invalid');
  }),
  property('an import line is parsed or rejected', fc.oneof(line, line, jsonText), (text) => {
    parseOrRefuse(() => readLine(bytesOf(text)), 'invalid');
  }),
  property('bytes that are not an import line are rejected', fc.uint8Array({ maxLength: 300 }), (bytes) => {
    parseOrRefuse(() => readLine(bytes), 'invalid');
  }),
  property(
    'a file is split into the same lines whatever its chunks',
    fc.tuple(
      fc.array(fc.constantFrom('{}', '', '\r', '\n', '\r\n', '\ufeff', 'ü', 'x'.repeat(70_000)), {
        maxLength: 30,
      }),
      fc.array(fc.nat(400), { maxLength: 40 }),
    ),
    async ([pieces, cuts]) => {
      const bytes = bytesOf(pieces.join(''));
      assert(Bun.deepEquals(await linesIn(splitAt(bytes, cuts)), await linesIn([bytes])), 'the lines differ');
    },
  ),
  property(
    'an idempotency key is visible ASCII of bounded length',
    fc.oneof(anything, fc.stringMatching(/^[!-~]{0,300}$/)),
    (text) => {
      const isKey =
        text.length >= 1 &&
        text.length <= LIMITS.idempotencyKeyCharactersMax &&
        [...text].every((each) => each > ' ' && each < '\x7f');
      assert(isVisibleAscii(text) === isKey, 'the result differs');
    },
  ),
  property(
    'If-Match yields its only revision, and none for weak or several ETags',
    fc
      .array(fc.oneof(revision, foreign), { maxLength: 8 })
      .chain((of) => fc.tuple(fc.constant(of), fc.constantFrom(',', ', ', ' ,\t'), fc.boolean())),
    ([parts, comma, isWeak]) => {
      const ours = parts.filter((part) => /^[0-9a-f]{16}$/.test(part)) as Revision[];
      const header = parts
        .map((part) =>
          ours.includes(part as Revision)
            ? `${isWeak ? 'W/' : ''}${etagOf({ revision: part as Revision })}`
            : part,
        )
        .join(comma);
      assert(
        requiredRevision(header) === (ours.length === 1 && !isWeak ? ours[0] : ''),
        `another revision in ${header}`,
      );
    },
  ),
  property('If-Match of any text is parsed', anything, (header) => {
    assert(requiredRevision(header) === (header.trim() === '*' ? undefined : ''), 'it yields a revision');
  }),
];

async function linesIn(chunks: readonly Uint8Array[]) {
  const found = [];
  for await (const lines of splitLines(streamOf(chunks))) {
    // A line is a view of its chunk.
    for (const { number, bytes } of lines)
      found.push({ number, text: bytes && Buffer.from(bytes).toString('hex') });
  }
  return found;
}

async function* streamOf(chunks: readonly Uint8Array[]) {
  yield* chunks;
}

function splitAt(bytes: Uint8Array, lengths: readonly number[]): readonly Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (const length of lengths) {
    pieces.push(bytes.subarray(from, from + length));
    from += length;
  }
  return [...pieces, bytes.subarray(Math.min(from, bytes.length))];
}
