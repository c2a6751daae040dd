/** A strict parser of the Prometheus text format, version 0.0.4: it throws on anything unknown. */

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
    const [, what, metric = '', value = ''] = META.exec(line) ?? [];
    if (what === 'HELP') families.set(metric, { kind: '', help: value, samples: [] });
    else if (what === 'TYPE') Object.assign(familyOf(families, metric), { kind: value });
    else {
      const sample = readSample(line);
      familyOf(families, sample.name).samples.push(sample);
    }
  }
  return families;
}

/** The metric family of a sample, which must follow its HELP line. */
function familyOf<T>(families: ReadonlyMap<string, T>, name: string): T {
  const family = families.get(name) ?? families.get(name.replace(SUFFIX, ''));
  if (family === undefined) throw new Error(`no HELP line for ${name}`);
  return family;
}

function readSample(line: string): ParsedSample {
  const [, name, labels = '', number = ''] = SAMPLE.exec(line) ?? [];
  const value = number === '+Inf' ? Number.POSITIVE_INFINITY : Number(number);
  if (name === undefined || number === '' || Number.isNaN(value)) throw new Error(`not a sample: ${line}`);
  const pairs = [...labels.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)];
  return {
    name,
    labels: Object.fromEntries(pairs.map(([, key = '', text = '']) => [key, text.replace(/\\(.)/g, '$1')])),
    value,
  };
}

/** The sum of all samples with this name and these labels. */
export function sumOf(
  families: ReadonlyMap<string, ParsedFamily>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  // A metric without events has no sample.
  const family = families.get(name) ?? families.get(name.replace(SUFFIX, ''));
  const matching = (family?.samples ?? []).filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([key, text]) => sample.labels[key] === text),
  );
  return matching.reduce((sum, { value }) => sum + value, 0);
}
