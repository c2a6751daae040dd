/** The pages of the site in reading order, as paths in the repository. A pattern takes its files in alphabetical order. */

export interface Chapter {
  readonly title: string;
  /** Factor of the score of its pages in the search: guides first. */
  readonly weight: number;
  readonly sources: readonly string[];
}

export const CHAPTERS: readonly Chapter[] = [
  {
    title: 'Start',
    weight: 2,
    sources: [
      'docs/index.md',
      'docs/concepts.md',
      'docs/is-it-for-me.md',
      'docs/guides/five-minutes.md',
      'docs/client.md',
      'docs/guides/test-suite.md',
    ],
  },
  {
    title: 'Tasks',
    weight: 2,
    sources: [
      'docs/tasks/look-up-a-link.md',
      'docs/tasks/find-a-user.md',
      'docs/tasks/create-a-user.md',
      'docs/tasks/change-a-link.md',
      'docs/tasks/follow-changes.md',
      'docs/tasks/sign-a-person-in.md',
    ],
  },
  {
    title: 'Sign users in',
    weight: 2,
    sources: [
      'docs/guides/login-page.md',
      'docs/guides/provider-sign-in.md',
      'docs/guides/registration.md',
      'docs/guides/password-guessing.md',
    ],
  },
  {
    title: 'Run it',
    weight: 2,
    sources: [
      'docs/guides/production.md',
      'docs/guides/processes.md',
      'docs/guides/network.md',
      'docs/guides/postgresql.md',
      'docs/guides/citus.md',
      'deploy/README.md',
      'docs/scale.md',
      'docs/guides/rates-and-overload.md',
      'docs/guides/monitoring.md',
      'docs/guides/troubleshooting.md',
      'UPGRADING.md',
    ],
  },
  {
    title: 'Control access',
    weight: 2,
    sources: ['docs/guides/clients-and-tokens.md', 'docs/guides/external-issuers.md', 'docs/guides/keys.md'],
  },
  {
    title: 'Work with records',
    weight: 2,
    sources: [
      'docs/guides/lists-and-writes.md',
      'docs/guides/import-and-export.md',
      'docs/guides/moving-in.md',
      'docs/guides/realms-as-code.md',
      'docs/guides/moved-provider.md',
      'docs/guides/move-links.md',
      'docs/guides/users-without-email.md',
      'docs/guides/retention-and-deletion.md',
      'docs/guides/outgoing-requests.md',
    ],
  },
  {
    title: 'Keep the data safe',
    weight: 2,
    sources: ['docs/guides/backup-and-restore.md', 'docs/guides/copy-a-database.md', 'docs/guides/schema.md'],
  },
  {
    title: 'What it does',
    weight: 1.5,
    sources: [
      'docs/wire.md',
      'docs/extensions.md',
      'docs/filters.md',
      'docs/feed.md',
      'docs/audit.md',
      'docs/admin.md',
      'docs/console.md',
      'docs/clients.md',
    ],
  },
  {
    title: 'Reference',
    weight: 1,
    sources: [
      'docs/reference/settings.md',
      'docs/reference/cli.md',
      'docs/reference/faults.md',
      'docs/reference/limits.md',
      'docs/reference/log-events.md',
      'docs/reference/metrics.md',
    ],
  },
  {
    title: 'Design',
    weight: 0.5,
    sources: ['docs/architecture.md', 'docs/benchmarks.md', 'docs/seed-gaps.md'],
  },
  {
    title: 'Project',
    weight: 0.5,
    sources: ['SECURITY.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'docs/releasing.md'],
  },
];

/** Pages for developers of authrealm, which are only in the repository. */
export const NOT_ON_THE_SITE = 'docs/decisions/';

/** The chapter of the API's operations precedes this one. */
export const CHAPTER_AFTER_API = 'Reference';
