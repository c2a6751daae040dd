/** Reads the text format of Prometheus, version 0.0.4, strictly: what it does not understand it throws. */

export interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface ParsedFamily {
  readonly kind: string;
  readonly help: string;
  readonly samples: readonly ParsedSample[];
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"';
const SAMPLE = new RegExp(`^(${NAME})(?:\\{((?:${LABEL})(?:,${LABEL})*)?\\})? (\\S+)$`);
const META = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`);
const SUFFIX = /_(?:bucket|sum|count)$/;

export function readPrometheus(text: string): ReadonlyMap<string, ParsedFamily> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const families = new Map<string, { kind: string; help: string; samples: ParsedSample[] }>();
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [, what, described = '', said = ''] = META.exec(line) ?? [];
    if (what === 'HELP') families.set(described, { kind: '', help: said, samples: [] });
    else if (what === 'TYPE') Object.assign(familyOf(families, described), { kind: said });
    else {
      const sample = readSample(line);
      familyOf(families, sample.name).samples.push(sample);
    }
  }
  return families;
}

/** The family of a name, which must have been described before. */
function familyOf<T>(families: ReadonlyMap<string, T>, name: string): T {
  const family = families.get(name) ?? families.get(name.replace(SUFFIX, ''));
  if (family === undefined) throw new Error(`nobody said what ${name} is`);
  return family;
}

function readSample(line: string): ParsedSample {
  const [, name, labels = '', number = ''] = SAMPLE.exec(line) ?? [];
  const value = number === '+Inf' ? Number.POSITIVE_INFINITY : Number(number);
  if (name === undefined || number === '' || Number.isNaN(value)) throw new Error(`no sample: ${line}`);
  const pairs = [...labels.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)];
  return {
    name,
    labels: Object.fromEntries(pairs.map(([, key = '', said = '']) => [key, said.replace(/\\(.)/g, '$1')])),
    value,
  };
}

/** The sum of all samples of this name whose labels hold these. */
export function sumOf(
  families: ReadonlyMap<string, ParsedFamily>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  // What never happened is not told.
  const family = families.get(name) ?? families.get(name.replace(SUFFIX, ''));
  const fit = (family?.samples ?? []).filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([key, said]) => sample.labels[key] === said),
  );
  return fit.reduce((sum, { value }) => sum + value, 0);
}
