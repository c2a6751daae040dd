/** What of the suites runs how: on which engines, in which part, and beside what. Everything else is ordinary. */

/**
 * What hashes passwords or searches without an index, which is done at the lowest priority and given up after two
 * seconds, or measures how long something takes: beside one of them there is one of the other engine at most.
 */
const QUIET = [
  'test/api/**',
  'test/backups_under_load.test.ts',
  'test/children.test.ts',
  'test/client*.test.ts',
  'test/console.test.ts',
  'test/concurrent_writes.test.ts',
  'test/copy.test.ts',
  'test/counted_beside.test.ts',
  'test/crowded.test.ts',
  'test/document*.test.ts',
  'test/erase_beside.test.ts',
  'test/filter.test.ts',
  'test/fuzz.test.ts',
  'test/guides.test.ts',
  'test/issuer_keys.test.ts',
  'test/jssdk.test.ts',
  'test/list*.test.ts',
  'test/log.test.ts',
  'test/matrix.test.ts',
  'test/metrics.test.ts',
  'test/model.test.ts',
  'test/paging.test.ts',
  'test/passwords.test.ts',
  'test/purge_command.test.ts',
  'test/records_command.test.ts',
  'test/releases.test.ts',
  'test/search_everywhere.test.ts',
  'test/seventh*.test.ts',
  'test/shopper.test.ts',
  'test/torture.test.ts',
  'test/wire*.test.ts',
] as const;

/** What runs once, with the reason: suites that choose their engine themselves, or to which it makes no difference. */
const ONCE: Readonly<Record<string, readonly string[]>> = {
  'is about the file of a SQLite database, beside it its key, or the copies of it': [
    'test/backup*.test.ts',
    'test/doctor*.test.ts',
    'test/durability.test.ts',
    'test/erase_beside.test.ts',
    'test/erased_bytes.test.ts',
    'test/faults_of_files.test.ts',
    'test/full_disk.test.ts',
    'test/import_rehearsal.test.ts',
    'test/keyring.test.ts',
    'test/launcher.test.ts',
    'test/releases.test.ts',
    'test/restore*.test.ts',
  ],
  'is about how the SQLite engine does it: its migrations, plans, slots, checksums, turns, readers beside': [
    'test/cascade_turns.test.ts',
    'test/counted_beside.test.ts',
    'test/finds.test.ts',
    'test/list_plans.test.ts',
    'test/memory_plans.test.ts',
    'test/migrate.test.ts',
    'test/pauses.test.ts',
    'test/slot.test.ts',
    'test/snapshot.test.ts',
    'test/store.sqlite.test.ts',
    'test/webhook_plans.test.ts',
    'test/wire_at_once.test.ts',
    'test/writer.test.ts',
  ],
  'serves a SQLite database that it makes itself': ['test/demo.test.ts'],
  'is about what a browser makes of pages, whichever engine is behind them': [
    'test/console/at_once.test.ts',
    'test/console/changes.test.ts',
    'test/console/clients.test.ts',
    'test/console/curl.test.ts',
    'test/console/docs.test.ts',
    'test/console/health.test.ts',
    'test/console/keyboard.test.ts',
    'test/console/long_list.test.ts',
    'test/console/provider.test.ts',
    'test/console/rights.test.ts',
    'test/console/session.test.ts',
    'test/console/signing_in*.test.ts',
    'test/console/stored_scripts.test.ts',
    'test/console/transfer*.test.ts',
    'test/console/try.test.ts',
    'test/console/unheard.test.ts',
    'test/console/walk.test.ts',
    'test/console/webhooks.test.ts',
  ],
  'pastes the documents, which begin with a SQLite database': ['test/docs.test.ts', 'test/guides.test.ts'],
};

/** The same, of those that take too long to run when a few minutes are all there is. */
const ONCE_AND_LONG: Readonly<Record<string, readonly string[]>> = {
  'is about PostgreSQL itself, its faults and its schema': [
    'test/citus.test.ts',
    'test/migrate_command.test.ts',
    'test/postgres_*.test.ts',
  ],
  'goes from one engine to the other, and back': ['test/copy*.test.ts'],
  'runs the suite of a release on each engine that the release has': ['test/previous_release.test.ts'],
};

/** What opens no database: it runs once, and a database that it asked for would be refused. */
const WITHOUT = [
  'test/roles.test.ts',
  'test/say.test.ts',
  'test/bare_engine.test.ts',
  'test/children.test.ts',
  'test/config.test.ts',
  'test/console_entry.test.ts',
  'test/console/characters.test.ts',
  'test/console/paged_rows.test.ts',
  'test/console/stretch.test.ts',
  'test/deploy.test.ts',
  'test/filter.test.ts',
  'test/fuzz_made.test.ts',
  'test/fuzz_meeting.test.ts',
  'test/imported_keys.test.ts',
  'test/issuer_key_sets.test.ts',
  'test/issuers_console.test.ts',
  'test/loading.test.ts',
  'test/log_witness.test.ts',
  'test/master_key.test.ts',
  'test/outbound*.test.ts',
  'test/passwords.test.ts',
  'test/plain_filter.test.ts',
  'test/prepaid.test.ts',
  'test/query.test.ts',
  'test/scale.test.ts',
  'test/sealed_secrets.test.ts',
  'test/supply_chain.test.ts',
  'test/texts.test.ts',
  'test/tidy.test.ts',
  'test/verified.test.ts',
] as const;

const PROMPT = ['test/store.test.ts', 'test/api/**'] as const;

/** What kills processes again and again, waits until something is given up, or is long for another reason. */
const LONG = [
  'test/backup.test.ts',
  'test/backups_under_load.test.ts',
  'test/change_streams.test.ts',
  'test/checkpoint_receiver.test.ts',
  'test/children.test.ts',
  'test/client_package.test.ts',
  'test/concurrency.test.ts',
  'test/console/**',
  'test/console_link_command.test.ts',
  'test/doctor_faults.test.ts',
  'test/durability.test.ts',
  'test/erasures_told.test.ts',
  'test/export.test.ts',
  'test/faults_of_files.test.ts',
  'test/fuzz.test.ts',
  'test/import_command.test.ts',
  'test/import_rehearsal.test.ts',
  'test/issuer_keys.test.ts',
  'test/model.test.ts',
  'test/presets.test.ts',
  'test/purge_beside.test.ts',
  'test/purge_command.test.ts',
  'test/records_command.test.ts',
  'test/restore.test.ts',
  'test/restore_checkpoints.test.ts',
  'test/restore_erasures.test.ts',
  'test/restore_killed.test.ts',
  'test/restore_ledger.test.ts',
  'test/retention.test.ts',
  'test/rewrap.test.ts',
  'test/rights_end.test.ts',
  'test/seventh_carried.test.ts',
  'test/torture.test.ts',
  'test/webhook_command.test.ts',
  'test/webhook_failures.test.ts',
  'test/webhook_guard.test.ts',
  'test/webhook_leases.test.ts',
  'test/webhook_metrics.test.ts',
] as const;

/** What mostly waits for a term or a deadline to end, so that several fit beside each other. */
const WAITING = [
  'test/change_streams.test.ts',
  'test/checkpoint_receiver.test.ts',
  'test/concurrency.test.ts',
  'test/erasures_told.test.ts',
  'test/retention.test.ts',
  'test/rights_end.test.ts',
  'test/webhook_failures.test.ts',
  'test/webhook_guard.test.ts',
  'test/webhook_leases.test.ts',
  'test/webhook_metrics.test.ts',
] as const;

/** What looks through a browser, which has processes of its own. */
const BROWSED = ['test/console/**'] as const;

/** How the files of a group run: words of `bun test`, and whether those of both engines run at the same time. */
export const GROUPS = {
  waiting: { words: ['--parallel=4'], isAbreast: true },
  beside: { words: ['--parallel=2'], isAbreast: false },
  browsed: { words: ['--parallel=3'], isAbreast: false },
  quiet: { words: [], isAbreast: true },
} as const;

export type Group = keyof typeof GROUPS;

export function groupOf(path: string): Group {
  if (isIn(QUIET)(path)) return 'quiet';
  if (isIn(WAITING)(path)) return 'waiting';
  return isIn(BROWSED)(path) ? 'browsed' : 'beside';
}

/** What opens no database. */
export const isWithout = isIn(WITHOUT);
/** What runs on one engine. */
export const isOnce = isIn([...Object.values(ONCE), ...Object.values(ONCE_AND_LONG)].flat());
export const isOnceAndLong = isIn(Object.values(ONCE_AND_LONG).flat());
export const isLong = isIn(LONG);
/** What runs on PostgreSQL even when a few minutes are all there is. */
export const isPrompt = isIn(PROMPT);

/** Whether a path is of these patterns. */
function isIn(patterns: readonly string[]): (path: string) => boolean {
  const globs = patterns.map((pattern) => new Bun.Glob(pattern));
  return (path) => globs.some((glob) => glob.match(path));
}
