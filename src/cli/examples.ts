/**
 * An example for each command, by its words: help texts and docs/reference/cli.md show them. A group of commands shows the first
 * ones of its commands. Variables stand for IDs that other commands print.
 */
export const EXAMPLES: Readonly<Record<string, string>> = {
  demo: 'authrealm demo',
  init: 'authrealm init --database ./authrealm.db',
  serve: 'authrealm serve --database ./authrealm.db --port 8080',
  'client create':
    'authrealm client create --name shop --scope "users:read profile-infos:read" --realm "$REALM"',
  'client list': 'authrealm client list --json',
  'client update': 'authrealm client update "$CLIENT" --scope "users:read users:write"',
  'client delete': 'authrealm client delete "$CLIENT" --dry-run',
  'client rotate': 'authrealm client rotate "$CLIENT" --overlap 48',
  'console link': 'authrealm console link --role support --label "Jane Doe"',
  'console sessions list': 'authrealm console sessions list',
  'console sessions end': 'authrealm console sessions end "$SESSION"',
  'keys list': 'authrealm keys list',
  'keys rotate': 'authrealm keys rotate',
  'keys withdraw': 'authrealm keys withdraw "$KEY"',
  'keys make': 'authrealm keys make ./master.key',
  'keys rewrap': 'authrealm keys rewrap --master-key-file ./new.key --previous-master-key-file ./old.key',
  'webhook create': 'authrealm webhook create --name crm --url https://crm.example/events --from oldest',
  'webhook list': 'authrealm webhook list',
  'webhook update': 'authrealm webhook update "$WEBHOOK" --events-max 50',
  'webhook delete': 'authrealm webhook delete "$WEBHOOK" --dry-run',
  'webhook rotate': 'authrealm webhook rotate "$WEBHOOK" --overlap 48',
  'webhook deliveries': 'authrealm webhook deliveries "$WEBHOOK" --dead',
  'webhook redeliver': 'authrealm webhook redeliver "$WEBHOOK" --all',
  migrate: 'authrealm migrate --print pending',
  import: 'authrealm import users.jsonl --dry-run',
  export: 'authrealm export users.jsonl --realm "$REALM"',
  copy: 'authrealm copy --from ./authrealm.db --to postgres://authrealm@db.example/authrealm --to-password-file ./password',
  backup: 'authrealm backup --into /var/backups/authrealm --keep 14',
  restore: 'authrealm restore ./authrealm.backup --database ./authrealm.db --dry-run',
  compact: 'authrealm compact --database ./authrealm.db',
  doctor: 'authrealm doctor --database ./authrealm.db',
  ready: 'authrealm ready --port 8080',
  'audit verify': 'authrealm audit verify --records',
  log: 'authrealm log --realm "$REALM" --user "$USER" --json',
  'erase user': 'authrealm erase user "$REALM" "$USER" --dry-run',
  'subject-access': 'authrealm subject-access "$REALM" "$USER" --to jane.jsonl',
  get: 'authrealm get user-info "$REALM" "$USER" --include oidc-profile-info,password-profile-info',
  list: `authrealm list user-info "$REALM" --filter 'ilike(email,*@example.com)' --sort -created_at`,
  find: 'authrealm find password-profile-info "$REALM" username=jane@example.com',
  create: 'authrealm create user-info "$REALM" name="Jane Doe" email=jane@example.com',
  update: 'authrealm update user-info "$REALM" "$USER" given_name=Jane',
  delete: 'authrealm delete user-info "$REALM" "$USER" --dry-run',
};

const GROUP_EXAMPLES_MAX = 3;

/** The examples of a command or a group of commands; of the program without words. */
export function examplesOf(words: string): readonly string[] {
  const own = EXAMPLES[words];
  if (own !== undefined) return [own];
  const below = Object.entries(EXAMPLES).filter(([each]) => words === '' || each.startsWith(`${words} `));
  return below.slice(0, GROUP_EXAMPLES_MAX).map(([, example]) => example);
}
