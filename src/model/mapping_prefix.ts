import { z } from 'zod';

/** The prefix of a merchant realm mapping (docs/wire.md#settings). */
export function mappingPrefix() {
  return z
    .string()
    .regex(/^[A-Za-z0-9]{2,255}$/, 'must be 2 to 255 letters and digits without accents')
    .meta({ minLength: 2, maxLength: 255, examples: ['shop'] });
}
