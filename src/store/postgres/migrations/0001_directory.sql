-- Instance tables: of the installation as a whole, not of a realm.

create table instance (
  singleton integer not null primary key check (singleton = 1),
  store_id text collate "C" not null,
  access_version bigint not null
);

create table keyring (
  key_id text collate "C" not null primary key,
  sealed bytea not null,
  created_at bigint not null
);

-- `mac` is an HMAC over a row that grants access, and `password_hash_mac` one over a password hash, under a key that the master key
-- opens. A row that another program writes has none, and is not honoured.

create table signing_key (
  kid text collate "C" not null primary key,
  public_jwk text collate "C" not null,
  private_sealed bytea not null,
  created_at bigint not null,
  signs_from bigint not null,
  withdrawn_at bigint,
  mac bytea
);

-- `implicit`: what the ID of a client alone gives, as JSON.
-- `end_user_address`: of a client with the scope sign-in, whether its requests report the address of the end user.

create table client (
  client_id text collate "C" not null primary key,
  name text collate "C" not null,
  scopes text collate "C" not null,
  all_realms integer not null,
  disabled_at bigint,
  secret_digest bytea not null,
  previous_digest bytea,
  previous_expires_at bigint,
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null,
  implicit text collate "C" not null,
  mac bytea,
  end_user_address text collate "C"
);

create table client_realm (
  client_id text collate "C" not null references client (client_id),
  realm_id uuid not null,
  mac bytea,
  primary key (client_id, realm_id)
);

-- Secrets of the installation, sealed by the master key.

create table instance_secret (
  name text collate "C" not null primary key,
  sealed bytea not null,
  created_at bigint not null
);

-- Realm data: every key begins with the realm.

-- `prefix` is that of the merchant realm mapping, and `account_settings` the settings of account members, as JSON.

create table realm (
  realm_id uuid not null primary key,
  name text collate "C" not null,
  redirect_uris text collate "C" not null,
  duplicate_email_policy text collate "C" not null,
  origin text collate "C",
  preset integer not null,
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null,
  prefix text collate "C",
  account_settings text collate "C"
);

create index realm_created on realm (created_at, realm_id);

create table oidc_profile (
  realm_id uuid not null references realm (realm_id),
  id uuid not null,
  name text collate "C" not null,
  discovery_url text collate "C" not null,
  client_id text collate "C" not null,
  client_secret_sealed bytea,
  issuer text collate "C" not null,
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null,
  primary key (realm_id, id)
);

create index oidc_profile_created on oidc_profile (realm_id, created_at, id);

create table password_profile (
  realm_id uuid not null references realm (realm_id),
  id uuid not null,
  name text collate "C" not null,
  username_format text collate "C" not null,
  enable_one_time_password_token integer not null,
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null,
  primary key (realm_id, id)
);

create index password_profile_created on password_profile (realm_id, created_at, id);

create table user_info (
  realm_id uuid not null references realm (realm_id),
  id uuid not null,
  name text collate "C" not null,
  email text collate "C" not null,
  given_name text collate "C",
  middle_name text collate "C",
  family_name text collate "C",
  creation_status text collate "C" not null,
  name_key text collate "C" not null,
  email_key text collate "C" not null,
  given_name_key text collate "C",
  middle_name_key text collate "C",
  family_name_key text collate "C",
  unicode_version text collate "C" not null,
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null,
  words text collate "C",
  primary key (realm_id, id)
);

create index user_info_created on user_info (realm_id, created_at, id);
create index user_info_updated on user_info (realm_id, updated_at, id);
create index user_info_name on user_info (realm_id, name_key);
create index user_info_email on user_info (realm_id, email_key);

create table oidc_profile_info (
  realm_id uuid not null,
  user_id uuid not null,
  id uuid not null,
  subject text collate "C" not null,
  issuer text collate "C" not null,
  oidc_profile_id uuid not null,
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null,
  primary key (realm_id, id),
  foreign key (realm_id, user_id) references user_info (realm_id, id),
  foreign key (realm_id, oidc_profile_id) references oidc_profile (realm_id, id)
);

create unique index oidc_profile_info_identity on oidc_profile_info (realm_id, issuer, subject);
create index oidc_profile_info_of_user on oidc_profile_info (realm_id, user_id, created_at, id);
create index oidc_profile_info_of_profile on oidc_profile_info (realm_id, oidc_profile_id, created_at, id);

-- `credential_version` is the revision of the write that set the password: tokens of a sign-in name it, and end with the password.

create table password_profile_info (
  realm_id uuid not null,
  user_id uuid not null,
  id uuid not null,
  username text collate "C" not null,
  password_profile_id uuid not null,
  password_hash text collate "C",
  password_normalised integer,
  username_key text collate "C" not null,
  unicode_version text collate "C" not null,
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null,
  words text collate "C",
  password_hash_mac bytea,
  credential_version text collate "C",
  primary key (realm_id, id),
  foreign key (realm_id, user_id) references user_info (realm_id, id),
  foreign key (realm_id, password_profile_id) references password_profile (realm_id, id)
);

create unique index password_profile_info_username
  on password_profile_info (realm_id, password_profile_id, username_key);
create index password_profile_info_of_user on password_profile_info (realm_id, user_id, created_at, id);
create index password_profile_info_by_username on password_profile_info (realm_id, username_key);
create index password_profile_info_of_profile on password_profile_info (realm_id, password_profile_id, created_at, id);

-- Searches of all realms. A hash index takes the same for a text of any length, and answers equality alone.

create index oidc_profile_info_subject_hash on oidc_profile_info using hash (subject);
create index password_profile_info_username_hash on password_profile_info using hash (username_key);

-- The words of names, e-mail addresses and usernames, for searches by their beginnings (docs/decisions/0015-lists-and-search.md).
-- The program computes them, with a space between two. A search reads all words that wait to be sorted into the index, so they
-- are few.

create index user_info_words on user_info using gin (array_to_tsvector(string_to_array(words, ' ')))
  with (gin_pending_list_limit = 256);
create index password_profile_info_words on password_profile_info using gin (array_to_tsvector(string_to_array(words, ' ')))
  with (gin_pending_list_limit = 256);

-- Outcomes that are kept for a repetition of their request: the IDs of the records that it created, separated by commas, or the code of
-- its refusal. `ordinal` counts what a client had remembered in a realm, so that its oldest is found.

create table idempotency (
  realm_id uuid not null,
  client_id text collate "C" not null,
  key text collate "C" not null,
  ordinal bigint not null,
  body text collate "C" not null,
  created text collate "C" not null,
  fault text collate "C",
  at bigint not null,
  expires_at bigint not null,
  primary key (realm_id, client_id, key)
);

create index idempotency_ordinal on idempotency (realm_id, client_id, ordinal);
create index idempotency_expiry on idempotency (expires_at);

-- The clock of each realm, without a foreign key, because it outlives the realm. Who writes in a realm claims its clock first, so that
-- order of `seq` is order of commit.
-- - `tag`, `entries`: the end of the chain of its log, and how many entries that came to; `anchor_…`: where the chain begins, which moves
--   when entries become too old. The nil UUID has the log of the installation.
-- - `moved`: where the clock stands in the order in which clocks moved. It orders nothing exactly: it finds the clocks that moved lately.
-- - `…_count`: how many records the realm has in each table directly below it: the total of a list.

create table realm_clock (
  realm_id uuid not null primary key,
  seq bigint not null,
  tag bytea,
  entries bigint,
  anchor_seq bigint,
  anchor_tag bytea,
  anchor_entries bigint,
  anchor_mac bytea,
  moved bigint not null default 0,
  oidc_profile_count bigint not null default 0,
  password_profile_count bigint not null default 0,
  user_info_count bigint not null default 0
);

create index realm_clock_moved on realm_clock (moved, realm_id);

-- The log of each realm. Revisions are stored as bytes, and events as numbers (src/domain/event.ts); a record_id is left out
-- where it is that of the user, or else of the realm. Consecutive entries of one commit about one user, or none, with the same
-- origin are a run: the last of them holds user_id, at, actor, request_id and address for all. `detail` and `personal` hold
-- values before and after (src/audit/packed_detail.ts), the latter encrypted under the key of the user. The tag is an HMAC over
-- the tag before it and the entry that these columns describe, whatever their encoding.

create table log_entry (
  realm_id uuid not null,
  seq bigint not null,
  event smallint not null,
  record_id uuid,
  revision bytea not null,
  members text collate "C",
  user_id uuid,
  at bigint,
  actor text collate "C",
  request_id text collate "C",
  address text collate "C",
  detail bytea,
  personal bytea,
  tag bytea,
  primary key (realm_id, seq)
);

create index log_entry_of_user on log_entry (realm_id, user_id, seq) where user_id is not null;

create table act (
  log_id uuid not null default '00000000-0000-0000-0000-000000000000',
  seq bigint not null,
  id uuid,
  action text collate "C" not null,
  actor text collate "C" not null,
  object text collate "C",
  realm_id uuid,
  user_id uuid,
  address text collate "C",
  request_id text collate "C",
  detail text collate "C" not null,
  at bigint not null,
  tag bytea not null,
  primary key (log_id, seq),
  unique (log_id, id)
);

create index act_of_user on act (realm_id, user_id, seq) where user_id is not null;

-- What the personal values in the log are encrypted under: a key is made of the salt and a secret of the installation.
-- Without the salt nobody reads them. A user who was erased has none; what is left is that it happened.

create table user_salt (
  realm_id uuid not null,
  user_id uuid not null,
  salt bytea not null,
  primary key (realm_id, user_id)
);

create table erasure (
  realm_id uuid not null,
  user_id uuid not null,
  at bigint not null,
  told_at bigint,
  primary key (realm_id, user_id)
);

create index erasure_untold on erasure (realm_id, user_id) where told_at is null;

-- Tokens that were taken back before they expired, and when each client last asked for one.

create table revoked_token (
  jti text collate "C" not null primary key,
  client_id text collate "C" not null,
  expires_at bigint not null
);

create index revoked_token_expiry on revoked_token (expires_at);

create table client_use (
  client_id text collate "C" not null primary key,
  at bigint not null
);

-- Links to the console that were not followed yet: of the one-time code of each its digest alone.

create table console_link (
  digest text collate "C" not null primary key,
  label text collate "C" not null,
  scopes text collate "C" not null,
  realms text collate "C" not null,
  expires_at bigint not null,
  mac bytea
);

create index console_link_expiry on console_link (expires_at);

-- Sessions of the console that were begun by a link or a provider and have not ended. `rules` has keyed digests of the rights of
-- the issuer that a person's claims met; it is empty for a link. A token lasts 15 minutes from its renewal.

create table console_session (
  session_id text collate "C" not null primary key,
  actor text collate "C" not null,
  scopes text collate "C" not null,
  realms text collate "C" not null,
  rules text collate "C" not null,
  begun_at bigint not null,
  renewed_at bigint not null,
  ends_at bigint not null,
  mac bytea
);

create index console_session_renewal on console_session (renewed_at);

-- Where changes are sent, how far each receiver is in each realm, what was tried, and what was given up.

create table webhook (
  webhook_id text collate "C" not null primary key,
  name text collate "C" not null,
  url text collate "C" not null,
  events text collate "C" not null,
  realms text collate "C" not null,
  with_data integer not null,
  events_max integer not null,
  skipped_client text collate "C",
  secret_sealed bytea not null,
  previous_sealed bytea,
  previous_expires_at bigint,
  disabled_at bigint,
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null,
  mac bytea
);

create table webhook_progress (
  webhook_id text collate "C" not null references webhook (webhook_id),
  realm_id uuid not null,
  seq bigint not null,
  attempts integer not null,
  next_at bigint not null,
  failed_seq bigint not null,
  behind_since bigint not null default 0,
  primary key (webhook_id, realm_id)
);

create index webhook_progress_due on webhook_progress (webhook_id, next_at) where next_at > 0;
create index webhook_progress_behind on webhook_progress (webhook_id, behind_since) where behind_since > 0;

create table delivery (
  webhook_id text collate "C" not null,
  delivery_id text collate "C" not null,
  message_id text collate "C" not null,
  realm_id uuid not null,
  first_seq bigint not null,
  last_seq bigint not null,
  attempt integer not null,
  outcome text collate "C" not null,
  status integer,
  duration_ms integer not null,
  at bigint not null,
  primary key (webhook_id, delivery_id)
);

create index delivery_failed on delivery (webhook_id, delivery_id) where outcome <> 'delivered';

create table dead_letter (
  webhook_id text collate "C" not null,
  realm_id uuid not null,
  first_seq bigint not null,
  last_seq bigint not null,
  attempts integer not null,
  at bigint not null,
  primary key (webhook_id, realm_id, first_seq)
);

create index dead_letter_waiting on dead_letter (webhook_id, realm_id, first_seq) where attempts = 0;

-- What one process at a time does for all of them.

create table lease (
  name text collate "C" not null primary key,
  holder text collate "C" not null,
  until bigint not null
);

-- Token buckets that limit wrong passwords: when each is full again. `name` is a keyed digest of profile and username, and `source`
-- one of a network or a device; either may be empty. A full bucket has no row.

create table sign_in_budget (
  realm_id uuid not null,
  name text collate "C" not null,
  kind smallint not null,
  source text collate "C" not null,
  full_at bigint not null,
  primary key (realm_id, name, kind, source)
);

create index sign_in_budget_full on sign_in_budget (full_at);
