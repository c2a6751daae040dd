-- serves: 1
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

-- Searches of all realms. A hash index takes the same for a text of any length, and answers equality alone.

create index oidc_profile_info_subject_hash on oidc_profile_info using hash (subject);
create index password_profile_info_username_hash on password_profile_info using hash (username_key);

-- Release 0.1.0, which wrote this table, had no PostgreSQL.

drop table change;

-- How far the log of a realm is chained, and how many entries that came to; where the chain begins, which moves when
-- entries become too old. The nil UUID has the log of the installation.

alter table realm_clock add column tagged_seq bigint;
alter table realm_clock add column tag bytea;
alter table realm_clock add column entries bigint;
alter table realm_clock add column anchor_seq bigint;
alter table realm_clock add column anchor_tag bytea;
alter table realm_clock add column anchor_entries bigint;
alter table realm_clock add column anchor_mac bytea;

-- Where the clock of a realm stands in the order in which clocks moved. It orders nothing exactly: it finds the clocks that
-- moved lately. Releases before this one leave it as it is.

alter table realm_clock add column moved bigint not null default 0;
create index realm_clock_moved on realm_clock (moved, realm_id);

-- How many records a realm has in each table directly below it, valid while `counted_seq` equals `seq`: the total of a list. A
-- release before this one advances `seq` alone; the next start of this one then counts the rows.

alter table realm_clock add column counted_seq bigint not null default 0;
alter table realm_clock add column oidc_profile_count bigint not null default 0;
alter table realm_clock add column password_profile_count bigint not null default 0;
alter table realm_clock add column user_info_count bigint not null default 0;

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

-- A client's stored answers are counted in each realm.

drop index idempotency_ordinal;
create index idempotency_ordinal on idempotency (realm_id, client_id, ordinal);

-- The words of names, e-mail addresses and usernames, for searches by their beginnings (docs/decisions/0015-lists-and-search.md).
-- The program computes them, with a space between two. A search reads all words that wait to be sorted into the index, so they
-- are few.

alter table user_info add column words text collate "C";
create index user_info_words on user_info using gin (array_to_tsvector(string_to_array(words, ' ')))
  with (gin_pending_list_limit = 256);

alter table password_profile_info add column words text collate "C";
create index password_profile_info_words on password_profile_info using gin (array_to_tsvector(string_to_array(words, ' ')))
  with (gin_pending_list_limit = 256);

-- The prefix of the merchant realm mapping. A release before this one leaves it as it is.

alter table realm add column prefix text collate "C";

-- Secrets of the installation, sealed by the master key.

create table instance_secret (
  name text collate "C" not null primary key,
  sealed bytea not null,
  created_at bigint not null
);

-- What the ID of a client alone gives, as JSON; null in rows from before.

alter table client add column implicit text collate "C";

-- HMACs over the rows that grant access and over password hashes, under a key that the master key opens. The first start with
-- the key fills in those of clients and signing keys; a row that another program writes has none, and is not honoured.

alter table client add column mac bytea;
alter table client_realm add column mac bytea;
alter table signing_key add column mac bytea;
alter table password_profile_info add column password_hash_mac bytea;

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
  scrubbed_at bigint,
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
  all_realms integer not null,
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

create table webhook_realm (
  webhook_id text collate "C" not null references webhook (webhook_id),
  realm_id uuid not null,
  primary key (webhook_id, realm_id)
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

create table dead_letter (
  webhook_id text collate "C" not null,
  realm_id uuid not null,
  first_seq bigint not null,
  last_seq bigint not null,
  attempts integer not null,
  at bigint not null,
  redelivered_at bigint,
  primary key (webhook_id, realm_id, first_seq)
);

create index dead_letter_waiting on dead_letter (webhook_id, realm_id, first_seq) where attempts = 0;
create index dead_letter_left on dead_letter (webhook_id) where redelivered_at is null;

-- What one process at a time does for all of them.

create table lease (
  name text collate "C" not null primary key,
  holder text collate "C" not null,
  until bigint not null
);
