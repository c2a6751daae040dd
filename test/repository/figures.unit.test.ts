import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import manifest from '../../package.json';
import packages from '../../package-lock.json';
import { mintClientSecret } from '../../src/access/clients/clients.ts';
import { SETTINGS } from '../../src/app/config/settings.ts';
import { FAULTS } from '../../src/model/fault.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { proseOf } from '../support/guides.ts';

/** The figures of README.md and SECURITY.md are those of the program. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const secret = mintClientSecret(systemClock).replace(/^[a-z]+_/, '');
const [attempts, seconds] = SETTINGS.badTokenRate.defaultValue.split('/');
const integrities = Object.values(packages.packages).flatMap((each) =>
  'integrity' in each ? [each.integrity.split('-')[0]] : [],
);

const FIGURES = {
  'README.md': [
    // The wire format that the service was founded on.
    'authentication realms API (version 2)',
    `listens on ${SETTINGS.host.defaultValue}:${SETTINGS.port.defaultValue}`,
    // An example; the number of days is the reader's.
    '`authrealm backup --into backups --keep 30`',
    `License: [${manifest.license}]`,
    'Auth0',
  ],
  'SECURITY.md': [
    `After ${attempts} failed attempts in ${seconds === '60' ? 'a minute' : `${seconds} seconds`}, an address gets ${FAULTS.rate_limited.status} `,
    'argon2id',
    `${Buffer.from(secret, 'base64url').length * 8} random bits`,
    `at most ${LIMITS.cascadeRecordsMax.toLocaleString('en-US')} records`,
    `version and ${[...new Set(integrities)].join(', ').toUpperCase().replace('SHA', 'SHA-')} of each`,
    `**A writer that probes.** ${FAULTS.conflict.status} `,
  ],
};

test.each(Object.entries(FIGURES))(
  '%s has every figure as the program has it, and no other',
  (page, figures) => {
    const prose = proseOf(readFileSync(join(ROOT, page), 'utf8'));
    for (const figure of figures) expect(prose).toContain(figure);
    const rest = figures.reduce((text, figure) => text.replaceAll(figure, ''), prose);
    expect(rest.match(/.{0,30}\d.{0,30}/g) ?? []).toEqual([]);
  },
);
