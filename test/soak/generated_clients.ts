import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { GENERATORS, type GeneratorResult, installFromNpm, runGenerator } from '../generators/generators.ts';
import { startGeneratorTarget } from '../generators/target.ts';

/**
 * Every generator makes a client from `/openapi.json`, unchanged; the client is compiled strictly and run. Prints one table
 * (docs/client.md#in-other-languages). `--only NAME` runs one.
 */

const { values: options } = parseArgs({ options: { only: { type: 'string' } } });
const chosen = GENERATORS.filter(({ name }) => options.only === undefined || name === options.only);
if (chosen.length === 0) {
  console.error(`unknown generator; choose from ${GENERATORS.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'authrealm-generators-'));
const target = await startGeneratorTarget();
const { document, variables, expected } = target;
const word = (isRight: boolean): string => (isRight ? 'yes' : 'no');

/** The columns after the version. */
function columnsOf({ isGenerated, isCompiled, seen }: GeneratorResult): readonly string[] {
  const statusOf = (what: keyof typeof expected) => {
    const [status] = seen[what] ?? [];
    return isDeepStrictEqual(seen[what], expected[what]) ? String(status) : `wrong: ${seen[what] ?? 'none'}`;
  };
  const steps = (['oidc', 'password', 'created', 'absent'] as const).map(statusOf);
  return [word(isGenerated), word(isCompiled), ...steps];
}

const HEAD = ['Generator', 'Version', 'Generated', 'Compiled', 'OIDC', 'Password', 'Create', 'Absent'];
const rows: (readonly string[])[] = [HEAD, HEAD.map(() => '---')];
let passed = 0;
try {
  await installFromNpm(folder);
  for (const generator of chosen) {
    const result = await runGenerator(generator, { folder, document, variables });
    if (result.error === undefined && isDeepStrictEqual(result.seen, expected)) passed += 1;
    else console.log(`${generator.name}: ${result.error ?? 'printed something else'}`);
    rows.push([generator.name, generator.version, ...columnsOf(result)]);
  }
  console.log(rows.map((row) => `| ${row.join(' | ')} |`).join('\n'));
} finally {
  await target.service.stop();
  rmSync(folder, { recursive: true, force: true });
}
console.log(`${passed} of ${chosen.length} generated clients work`);
process.exit(passed === chosen.length ? 0 : 1);
