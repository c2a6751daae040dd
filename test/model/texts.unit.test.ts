import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { foldedKey } from '../../src/model/text/folded_key.ts';
import { email, KEY_BYTES_MAX, username } from '../../src/model/text/folding.ts';
import { issuerUrl, text } from '../../src/model/text/text.ts';
import { UNUSUAL_EMAILS } from '../support/emails.ts';

function holds<T>(arbitrary: fc.Arbitrary<T>, property: (value: T) => void, numRuns = 500): void {
  fc.assert(fc.property(arbitrary, property), { numRuns });
}

describe('foldedKey', () => {
  const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 });

  test('a folded key is its own folded key', () => {
    holds(word, (value) => expect(foldedKey(foldedKey(value))).toBe(foldedKey(value)), 2_000);
  });

  test('the folded key is the same for every Unicode normalization form', () => {
    holds(word, (value) => {
      for (const form of ['NFC', 'NFD', 'NFKC', 'NFKD'] as const) {
        expect(foldedKey(value.normalize(form))).toBe(foldedKey(value));
      }
    });
  });

  test('the folded key of every letter is its own key, in any letter case', () => {
    // Letters are in the first two planes.
    const differing: string[] = [];
    for (let point = 0; point <= 0x1ffff; point += 1) {
      const letter = String.fromCodePoint(point);
      const key = foldedKey(letter);
      const others = [key, letter.toUpperCase(), letter.toLowerCase(), letter.normalize('NFD')];
      if (others.some((other) => foldedKey(other) !== key)) differing.push(point.toString(16));
    }
    expect(differing).toEqual([]);
  });

  test('the folded key ignores letter case and invisible characters', () => {
    holds(fc.tuple(word, fc.constantFrom('\u200b', '\u00ad', '\ufeff', '\u2060')), ([value, invisible]) => {
      expect(foldedKey(value.toUpperCase())).toBe(foldedKey(value));
      expect(foldedKey(value.replace(/^./u, `$&${invisible}`))).toBe(foldedKey(value));
    });
  });

  const SAME: [string, string][] = [
    ['Jane', 'jANE'],
    ['straße', 'STRASSE'],
    ['ﬁona', 'FIONA'],
    ['ＪＡＮＥ', 'jane'],
    ['Ångström', 'A\u030angstro\u0308m'],
    ['\u212bngström', 'ångström'],
    ['ΣΟΦΟΣ', 'σοφοσ'],
    ['ja\u200bne', 'jane'],
    ['STRAẞE', 'straße'],
    ['ıvan', 'IVAN'],
    ['solo ', 'solo'],
    ['\u3000solo\u00a0\u2003', 'solo'],
    ['\u200b solo \u2060', 'solo'],
    ['solo\u2800', 'solo'],
    ['Jane  Doe', 'jane doe'],
    ['Jane\u00a0Doe', 'jane doe'],
    ['Jane\u3164 \u2028Doe', 'jane doe'],
  ];
  test.each(SAME)('%j and %j have the same folded key', (one, two) =>
    expect(foldedKey(one)).toBe(foldedKey(two)),
  );

  const DISTINCT: [string, string][] = [
    ['jane', 'jаne'],
    ['o', '0'],
    ['l', '1'],
    ['ä', 'a'],
    ['jane doe', 'janedoe'],
  ];
  test.each(DISTINCT)('%j and %j have distinct folded keys', (one, two) => {
    expect(foldedKey(one)).not.toBe(foldedKey(two));
  });
});

describe('a stored text', () => {
  const subject = text(255);

  test('a stored text has 1 to 255 code points, and is stored verbatim', () => {
    const point = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 1 })
      .filter((unit) => !/[\p{Cc}\p{Cs}]/u.test(unit));
    holds(fc.array(point, { minLength: 1, maxLength: 300 }), (points) => {
      const value = points.join('');
      fc.pre(/\S/u.test(value));
      const read = subject.safeParse(value);
      expect(read.success).toBe(points.length <= 255);
      if (read.success) expect(read.data).toBe(value);
    });
  });

  const REFUSED: [string, unknown][] = [
    ['undefined', undefined],
    ['null', null],
    ['a number', 1],
    ['empty', ''],
    ['blank', ' \u00a0\u2003'],
    ['NUL', 'a\0b'],
    ['a line feed', 'a\nb'],
    ['a tab', 'a\tb'],
    ['DEL', 'a\x7fb'],
    ['a control of the second range', 'a\x85b'],
    ['a lone high surrogate', 'a\ud800b'],
    ['a lone low surrogate', 'a\udc00'],
    ['256 letters', 'x'.repeat(256)],
    ['256 letters of two units', '😀'.repeat(256)],
  ];
  test.each(REFUSED)('a stored text is rejected: %s', (_name, value) =>
    expect(subject.safeParse(value).success).toBe(false),
  );

  test.each(['x', ' x ', 'x'.repeat(255), '😀'.repeat(255), 'auth0|5f7c', 'ÄÖÜ', 'e\u0301', '\u202ex'])(
    'the stored text %j is accepted',
    (value) => {
      expect(subject.parse(value)).toBe(value);
    },
  );
});

describe('an e-mail address', () => {
  test.each(UNUSUAL_EMAILS)('the e-mail address %s is accepted as it is', (value) =>
    expect(email().parse(value)).toBe(value),
  );

  test.each([
    'jane.example.com',
    'jane@',
    '@example.com',
    'jane@home@example.com',
    'jane@.example.com',
    'jane@example..com',
    'jane@example.com.',
    ...[...',;:<>()[]\\" \t\n\u00a0\u2003\u3000\u0085\0\x7f\u202e\u2066\u061c\u0378\uffff\ud83d'].flatMap(
      (character) => [
        `ja${character}ne@example.com`,
        `jane@exa${character}mple.com`,
        `jane@example.com${character}`,
      ],
    ),
    `${'x'.repeat(320)}@example.com`,
  ])('the e-mail address %j is rejected', (value) => expect(email().safeParse(value).success).toBe(false));
});

describe('an issuer', () => {
  const issuer = issuerUrl();
  const long = (length: number) => `https://a/${'x'.repeat(length - 10)}`;

  test.each([
    'https://login.example.com/',
    'http://127.0.0.1:8080',
    'https://a/b/c',
    'https://A.example/%7Etenant',
    'https://a//b',
    'https://a/@b',
    'https://[::1]/',
    long(1024),
  ])('the issuer %s is accepted verbatim', (value) => expect(issuer.parse(value)).toBe(value));

  test.each([
    '',
    'login.example.com',
    '//login.example.com',
    'ftp://login.example.com',
    'javascript:alert(1)',
    'https://',
    'https://user@login.example.com',
    'https://user:secret@login.example.com/',
    'https://login.example.com\\@evil.example',
    'https://login.example.com\\tenant',
    'https://login.example.com?x',
    'https://login.example.com#x',
    'https://login.example.com/?',
    'https://lögin.example.com',
    'https://login.example.com/a b',
    ' https://login.example.com',
    'https://login.example.com/\n',
    'https://login.example.com:99999',
    long(1025),
  ])('the issuer %j is rejected', (value) => expect(issuer.safeParse(value).success).toBe(false));
});

describe('a username', () => {
  const name = username();

  test('an accepted username has a visible folded key that fits an index', () => {
    holds(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }),
      (value) => {
        const read = name.safeParse(value);
        if (!read.success) return;
        expect(read.data).toBe(value);
        expect(foldedKey(value)).not.toBe('');
        expect(Buffer.byteLength(foldedKey(value))).toBeLessThanOrEqual(KEY_BYTES_MAX);
        expect(/[\p{Cc}\p{Cs}\p{Cn}\p{Co}\p{Bidi_Control}]/u.test(value)).toBe(false);
      },
      2_000,
    );
  });

  test.each(['jane', 'jane@example.com', 'Jané Doe', '王小明', '😀', 'x'.repeat(255), 'ﬁ'])(
    'the username %j is accepted',
    (value) => {
      expect(name.parse(value)).toBe(value);
    },
  );

  const REFUSED: [string, string][] = [
    ['a right-to-left override', 'jane\u202e'],
    ['an isolate', '\u2066jane'],
    ['an Arabic letter mark', 'jane\u061c'],
    ['a private-use character', 'jane\ue000'],
    ['an unassigned character', 'jane\u0378'],
    ['nothing visible', '\u200b\u00ad'],
    ['blanks without ink', '\u2800\u{1d159}'],
    ['a folded key too long for the index', '\ufdfa'.repeat(60)],
    ['256 letters', 'x'.repeat(256)],
    ['a control character', 'ja\u0007ne'],
  ];
  test.each(REFUSED)('a username is rejected: %s', (_name, value) =>
    expect(name.safeParse(value).success).toBe(false),
  );
});
