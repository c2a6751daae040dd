create table instance (
  singleton integer not null,
  store_id text collate "C" not null,
  access_version bigint not null,
  check (singleton = 1)
);

create table keyring (
  key_id text collate "C" not null,
  sealed bytea not null,
  created_at bigint not null
);

create table signing_key (
  kid text collate "C" not null,
  public_jwk text collate "C" not null,
  private_sealed bytea not null,
  created_at bigint not null,
  signs_from bigint not null,
  withdrawn_at bigint,
  mac bytea
);

create table client (
  client_id text collate "C" not null,
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
  end_user_address text collate "C",
  mac bytea
);

create table client_realm (
  client_id text collate "C" not null,
  realm_id uuid not null,
  mac bytea
);

create table instance_secret (
  name text collate "C" not null,
  sealed bytea not null,
  created_at bigint not null
);

create table revoked_token (
  jti text collate "C" not null,
  client_id text collate "C" not null,
  expires_at bigint not null
);
create index revoked_token_expiry on revoked_token (expires_at);

create table webhook (
  webhook_id text collate "C" not null,
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

create table client_use (
  client_id text collate "C" not null,
  at bigint not null
);

create table console_link (
  digest text collate "C" not null,
  label text collate "C" not null,
  scopes text collate "C" not null,
  realms text collate "C" not null,
  created_at bigint not null,
  expires_at bigint not null,
  mac bytea
);
create index console_link_expiry on console_link (expires_at);

create table console_session (
  session_id text collate "C" not null,
  actor text collate "C" not null,
  scopes text collate "C" not null,
  realms text collate "C" not null,
  rules text collate "C" not null,
  begun_at bigint not null,
  renewed_at bigint not null,
  ends_at bigint not null,
  person text collate "C",
  mac bytea
);
create index console_session_renewal on console_session (renewed_at);

create table webhook_progress (
  webhook_id text collate "C" not null,
  realm_id uuid not null,
  seq bigint not null,
  attempts integer not null,
  next_at bigint not null,
  failed_seq bigint not null,
  behind_since bigint not null
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
  at bigint not null
);
create index delivery_failed on delivery (webhook_id, delivery_id) where outcome <> 'delivered';

create table dead_letter (
  webhook_id text collate "C" not null,
  realm_id uuid not null,
  first_seq bigint not null,
  last_seq bigint not null,
  attempts integer not null,
  at bigint not null
);
create index dead_letter_waiting on dead_letter (webhook_id, realm_id, first_seq) where attempts = 0;

create table lease (
  name text collate "C" not null,
  holder text collate "C" not null,
  until bigint not null
);

create table realm (
  realm_id uuid not null,
  name text collate "C" not null,
  redirect_uris text collate "C" not null,
  duplicate_email_policy text collate "C" not null,
  origin text collate "C",
  preset integer not null,
  prefix text collate "C",
  account_settings text collate "C",
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null
);
create index realm_created on realm (created_at, realm_id);

create table oidc_profile (
  realm_id uuid not null,
  id uuid not null,
  name text collate "C" not null,
  discovery_url text collate "C" not null,
  client_id text collate "C" not null,
  client_secret_sealed bytea,
  issuer text collate "C" not null,
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null
);
create index oidc_profile_created on oidc_profile (realm_id, created_at, id);

create table password_profile (
  realm_id uuid not null,
  id uuid not null,
  name text collate "C" not null,
  username_format text collate "C" not null,
  enable_one_time_password_token integer not null,
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null
);
create index password_profile_created on password_profile (realm_id, created_at, id);

create table user_info (
  realm_id uuid not null,
  id uuid not null,
  name text collate "C" not null,
  email text collate "C" not null,
  given_name text collate "C",
  middle_name text collate "C",
  family_name text collate "C",
  creation_status text collate "C" not null,
  email_vouched integer not null,
  enabled integer not null,
  name_key text collate "C" not null,
  email_key text collate "C" not null,
  given_name_key text collate "C",
  middle_name_key text collate "C",
  family_name_key text collate "C",
  unicode_version text collate "C" not null,
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null,
  words text collate "C"
);
create index user_info_created on user_info (realm_id, created_at, id);
create index user_info_updated on user_info (realm_id, updated_at, id);
create index user_info_by_email on user_info (realm_id, email_key);
create index user_info_by_name on user_info (realm_id, name_key);
create index user_info_words on user_info using gin (array_to_tsvector(string_to_array(words, ' '))) with (gin_pending_list_limit = 256);

create table oidc_profile_info (
  realm_id uuid not null,
  user_id uuid not null,
  id uuid not null,
  subject text collate "C" not null,
  issuer text collate "C" not null,
  oidc_profile_id uuid not null,
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null
);
create unique index oidc_profile_info_subject on oidc_profile_info (realm_id, issuer, subject);
create index oidc_profile_info_of_user on oidc_profile_info (realm_id, user_id, created_at, id);
create index oidc_profile_info_of_oidc_profile on oidc_profile_info (realm_id, oidc_profile_id, created_at, id);
create index oidc_profile_info_subject_hash on oidc_profile_info using hash (subject);

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
  credential_version text collate "C"
);
create unique index password_profile_info_username on password_profile_info (realm_id, password_profile_id, username_key);
create index password_profile_info_of_user on password_profile_info (realm_id, user_id, created_at, id);
create index password_profile_info_of_password_profile on password_profile_info (realm_id, password_profile_id, created_at, id);
create index password_profile_info_by_username on password_profile_info (realm_id, username_key);
create index password_profile_info_username_hash on password_profile_info using hash (username_key);
create index password_profile_info_words on password_profile_info using gin (array_to_tsvector(string_to_array(words, ' '))) with (gin_pending_list_limit = 256);

create table idempotency (
  realm_id uuid not null,
  client_id text collate "C" not null,
  key text collate "C" not null,
  ordinal bigint not null,
  body text collate "C" not null,
  created text collate "C" not null,
  fault text collate "C",
  at bigint not null,
  expires_at bigint not null
);
create index idempotency_ordinal on idempotency (realm_id, client_id, ordinal);
create index idempotency_expiry on idempotency (expires_at);

create table user_salt (
  realm_id uuid not null,
  user_id uuid not null,
  salt bytea not null
);

create table erasure (
  realm_id uuid not null,
  user_id uuid not null,
  at bigint not null,
  told_at bigint
);
create index erasure_untold on erasure (realm_id, user_id) where told_at is null;

create table sign_in_budget (
  realm_id uuid not null,
  name text collate "C" not null,
  kind smallint not null,
  source text collate "C" not null,
  full_at bigint not null
);
create index sign_in_budget_full on sign_in_budget (full_at);

create table realm_clock (
  realm_id uuid not null,
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
  tag bytea
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
  tag bytea not null
);
create index act_of_user on act (realm_id, user_id, seq) where user_id is not null;
create unique index act_id on act (log_id, id);

-- In a new database no table has statistics, and the planner takes the newest index for the check of a foreign key: so the
-- primary keys come after the other indexes.
alter table instance add primary key (singleton);
alter table keyring add primary key (key_id);
alter table signing_key add primary key (kid);
alter table client add primary key (client_id);
alter table client_realm add primary key (client_id, realm_id);
alter table instance_secret add primary key (name);
alter table revoked_token add primary key (jti);
alter table webhook add primary key (webhook_id);
alter table client_use add primary key (client_id);
alter table console_link add primary key (digest);
alter table console_session add primary key (session_id);
alter table webhook_progress add primary key (webhook_id, realm_id);
alter table delivery add primary key (webhook_id, delivery_id);
alter table dead_letter add primary key (webhook_id, realm_id, first_seq);
alter table lease add primary key (name);
alter table realm add primary key (realm_id);
alter table oidc_profile add primary key (realm_id, id);
alter table password_profile add primary key (realm_id, id);
alter table user_info add primary key (realm_id, id);
alter table oidc_profile_info add primary key (realm_id, id);
alter table password_profile_info add primary key (realm_id, id);
alter table idempotency add primary key (realm_id, client_id, key);
alter table user_salt add primary key (realm_id, user_id);
alter table erasure add primary key (realm_id, user_id);
alter table sign_in_budget add primary key (realm_id, name, kind, source);
alter table realm_clock add primary key (realm_id);
alter table log_entry add primary key (realm_id, seq);
alter table act add primary key (log_id, seq);

alter table client_realm add foreign key (client_id) references client (client_id);
alter table webhook_progress add foreign key (webhook_id) references webhook (webhook_id);
alter table oidc_profile add foreign key (realm_id) references realm (realm_id);
alter table password_profile add foreign key (realm_id) references realm (realm_id);
alter table user_info add foreign key (realm_id) references realm (realm_id);
alter table oidc_profile_info add foreign key (realm_id, user_id) references user_info (realm_id, id);
alter table oidc_profile_info add foreign key (realm_id, oidc_profile_id) references oidc_profile (realm_id, id);
alter table password_profile_info add foreign key (realm_id, user_id) references user_info (realm_id, id);
alter table password_profile_info add foreign key (realm_id, password_profile_id) references password_profile (realm_id, id);
