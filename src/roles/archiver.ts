import { constants, setPriority } from 'node:os';
import { Refusal } from '../domain/fault.ts';
import { type Errand, runErrand } from '../store/backups/archiver.ts';

/** What became of an errand. */
export type Told = { readonly answer: unknown } | { readonly refusal: string };

/** One errand comes over the channel to the parent; what became of it goes back. */
export async function serveArchiver(): Promise<void> {
  // First of all: a channel that is closed while nobody heeds it keeps the runtime turning for ever.
  process.once('disconnect', () => process.exit());
  if (!process.connected) return;
  const errand = await new Promise<Errand>((resolve) => process.once('message', resolve));
  // A copy keeps the log of the database from being folded back, and should end; looking through may take its time.
  if (errand.does === 'examine') setPriority(constants.priority.PRIORITY_LOW);
  process.send?.(outcomeOf(errand));
  process.disconnect?.();
}

function outcomeOf(errand: Errand): Told {
  try {
    return { answer: runErrand(errand) };
  } catch (error) {
    if (error instanceof Refusal) return { refusal: error.message };
    throw error;
  }
}
