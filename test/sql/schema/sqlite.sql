create table oidc_profile_info (
  slot integer not null,
  subject_crc integer not null,
  realm_id integer not null,
  user_id blob not null,
  id blob not null,
  subject text not null,
  issuer text not null,
  oidc_profile_id blob not null,
  created_at integer not null,
  updated_at integer not null,
  revision text not null,
  primary key (slot),
  unique (realm_id, id),
  foreign key (realm_id, user_id) references user_info (realm_id, id),
  foreign key (realm_id, oidc_profile_id) references oidc_profile (realm_id, id)
) strict;
create unique index oidc_profile_info_subject on oidc_profile_info (realm_id, issuer, subject);
create index oidc_profile_info_of_user on oidc_profile_info (realm_id, user_id, created_at, id);
create index oidc_profile_info_of_oidc_profile on oidc_profile_info (realm_id, oidc_profile_id, created_at, id);
create index oidc_profile_info_subject_crc on oidc_profile_info (subject_crc);

create table password_profile_info (
  slot integer not null,
  username_crc integer not null,
  realm_id integer not null,
  user_id blob not null,
  id blob not null,
  username text not null,
  password_profile_id blob not null,
  password_hash text,
  password_normalised integer,
  username_key text not null,
  unicode_version text not null,
  created_at integer not null,
  updated_at integer not null,
  revision text not null,
  words text,
  password_hash_mac blob,
  credential_version text,
  primary key (slot),
  unique (realm_id, id),
  foreign key (realm_id, user_id) references user_info (realm_id, id),
  foreign key (realm_id, password_profile_id) references password_profile (realm_id, id)
) strict;
create unique index password_profile_info_username on password_profile_info (realm_id, password_profile_id, username_key);
create index password_profile_info_of_user on password_profile_info (realm_id, user_id, created_at, id);
create index password_profile_info_of_password_profile on password_profile_info (realm_id, password_profile_id, created_at, id);
create index password_profile_info_by_username on password_profile_info (realm_id, username_key);
create index password_profile_info_username_crc on password_profile_info (username_crc);
create table password_profile_info_word (
  word text not null,
  slot integer not null,
  primary key (word, slot)
) strict, without rowid;
create trigger password_profile_info_word_insert after insert on password_profile_info begin
  insert into password_profile_info_word select value, new.slot from json_each('["' || replace(new.words, ' ', '","') || '"]')
  where value <> '' on conflict do nothing;
end;
create trigger password_profile_info_word_delete after delete on password_profile_info begin
  delete from password_profile_info_word where slot = old.slot and word in (select value from json_each('["' || replace(old.words, ' ', '","') || '"]'));
end;
create trigger password_profile_info_word_update after update of words on password_profile_info
  when new.words is not old.words begin
  delete from password_profile_info_word where slot = old.slot and word in (select value from json_each('["' || replace(old.words, ' ', '","') || '"]'));
  insert into password_profile_info_word select value, new.slot from json_each('["' || replace(new.words, ' ', '","') || '"]')
  where value <> '' on conflict do nothing;
end;

create table instance (
  singleton integer not null,
  store_id text not null,
  access_version integer not null,
  primary key (singleton),
  check (singleton = 1)
) strict;

create table keyring (
  key_id text not null,
  sealed blob not null,
  created_at integer not null,
  primary key (key_id)
) strict;

create table signing_key (
  kid text not null,
  public_jwk text not null,
  private_sealed blob not null,
  created_at integer not null,
  signs_from integer not null,
  withdrawn_at integer,
  mac blob,
  primary key (kid)
) strict;

create table client (
  client_id text not null,
  name text not null,
  scopes text not null,
  all_realms integer not null,
  disabled_at integer,
  secret_digest blob not null,
  previous_digest blob,
  previous_expires_at integer,
  created_at integer not null,
  updated_at integer not null,
  revision text not null,
  implicit text not null,
  end_user_address text,
  mac blob,
  primary key (client_id)
) strict;

create table client_realm (
  client_id text not null,
  realm_id text not null,
  mac blob,
  primary key (client_id, realm_id),
  foreign key (client_id) references client (client_id)
) strict, without rowid;

create table instance_secret (
  name text not null,
  sealed blob not null,
  created_at integer not null,
  primary key (name)
) strict;

create table revoked_token (
  jti text not null,
  client_id text not null,
  expires_at integer not null,
  primary key (jti)
) strict, without rowid;
create index revoked_token_expiry on revoked_token (expires_at);

create table webhook (
  webhook_id text not null,
  name text not null,
  url text not null,
  events text not null,
  realms text not null,
  with_data integer not null,
  events_max integer not null,
  skipped_client text,
  secret_sealed blob not null,
  previous_sealed blob,
  previous_expires_at integer,
  disabled_at integer,
  created_at integer not null,
  updated_at integer not null,
  revision text not null,
  mac blob,
  primary key (webhook_id)
) strict;

create table client_use (
  client_id text not null,
  at integer not null,
  primary key (client_id)
) strict, without rowid;

create table console_link (
  digest text not null,
  label text not null,
  scopes text not null,
  realms text not null,
  created_at integer not null,
  expires_at integer not null,
  mac blob,
  primary key (digest)
) strict, without rowid;
create index console_link_expiry on console_link (expires_at);

create table console_session (
  session_id text not null,
  actor text not null,
  scopes text not null,
  realms text not null,
  rules text not null,
  begun_at integer not null,
  renewed_at integer not null,
  ends_at integer not null,
  person text,
  mac blob,
  primary key (session_id)
) strict, without rowid;
create index console_session_renewal on console_session (renewed_at);

create table webhook_progress (
  webhook_id text not null,
  realm_id text not null,
  seq integer not null,
  attempts integer not null,
  next_at integer not null,
  failed_seq integer not null,
  behind_since integer not null,
  primary key (webhook_id, realm_id),
  foreign key (webhook_id) references webhook (webhook_id)
) strict, without rowid;
create index webhook_progress_due on webhook_progress (webhook_id, next_at) where next_at > 0;
create index webhook_progress_behind on webhook_progress (webhook_id, behind_since) where behind_since > 0;

create table delivery (
  webhook_id text not null,
  delivery_id text not null,
  message_id text not null,
  realm_id text not null,
  first_seq integer not null,
  last_seq integer not null,
  attempt integer not null,
  outcome text not null,
  status integer,
  duration_ms integer not null,
  at integer not null,
  primary key (webhook_id, delivery_id)
) strict, without rowid;
create index delivery_failed on delivery (webhook_id, delivery_id) where outcome <> 'delivered';

create table dead_letter (
  webhook_id text not null,
  realm_id text not null,
  first_seq integer not null,
  last_seq integer not null,
  attempts integer not null,
  at integer not null,
  primary key (webhook_id, realm_id, first_seq)
) strict, without rowid;
create index dead_letter_waiting on dead_letter (webhook_id, realm_id, first_seq) where attempts = 0;

create table lease (
  name text not null,
  holder text not null,
  until integer not null,
  primary key (name)
) strict, without rowid;

create table realm (
  slot integer not null,
  realm_id blob not null,
  name text not null,
  redirect_uris text not null,
  duplicate_email_policy text not null,
  origin text,
  preset integer not null,
  prefix text,
  account_settings text,
  created_at integer not null,
  updated_at integer not null,
  revision text not null,
  primary key (slot),
  unique (realm_id)
) strict;
create index realm_created on realm (created_at, realm_id);

create table oidc_profile (
  slot integer not null,
  realm_id integer not null,
  id blob not null,
  name text not null,
  discovery_url text not null,
  client_id text not null,
  client_secret_sealed blob,
  issuer text not null,
  created_at integer not null,
  updated_at integer not null,
  revision text not null,
  primary key (slot),
  unique (realm_id, id),
  foreign key (realm_id) references realm (slot)
) strict;
create index oidc_profile_created on oidc_profile (realm_id, created_at, id);

create table password_profile (
  slot integer not null,
  realm_id integer not null,
  id blob not null,
  name text not null,
  username_format text not null,
  enable_one_time_password_token integer not null,
  created_at integer not null,
  updated_at integer not null,
  revision text not null,
  primary key (slot),
  unique (realm_id, id),
  foreign key (realm_id) references realm (slot)
) strict;
create index password_profile_created on password_profile (realm_id, created_at, id);

create table user_info (
  slot integer not null,
  realm_id integer not null,
  id blob not null,
  name text not null,
  email text not null,
  given_name text,
  middle_name text,
  family_name text,
  creation_status text not null,
  email_vouched integer not null,
  enabled integer not null,
  name_key text not null,
  email_key text not null,
  given_name_key text,
  middle_name_key text,
  family_name_key text,
  unicode_version text not null,
  created_at integer not null,
  updated_at integer not null,
  revision text not null,
  words text,
  primary key (slot),
  unique (realm_id, id),
  foreign key (realm_id) references realm (slot)
) strict;
create index user_info_created on user_info (realm_id, created_at, id);
create index user_info_updated on user_info (realm_id, updated_at, id);
create index user_info_by_email on user_info (realm_id, email_key);
create index user_info_by_name on user_info (realm_id, name_key);
create table user_info_word (
  word text not null,
  slot integer not null,
  primary key (word, slot)
) strict, without rowid;
create trigger user_info_word_insert after insert on user_info begin
  insert into user_info_word select value, new.slot from json_each('["' || replace(new.words, ' ', '","') || '"]')
  where value <> '' on conflict do nothing;
end;
create trigger user_info_word_delete after delete on user_info begin
  delete from user_info_word where slot = old.slot and word in (select value from json_each('["' || replace(old.words, ' ', '","') || '"]'));
end;
create trigger user_info_word_update after update of words on user_info
  when new.words is not old.words begin
  delete from user_info_word where slot = old.slot and word in (select value from json_each('["' || replace(old.words, ' ', '","') || '"]'));
  insert into user_info_word select value, new.slot from json_each('["' || replace(new.words, ' ', '","') || '"]')
  where value <> '' on conflict do nothing;
end;

create table idempotency (
  realm_id text not null,
  client_id text not null,
  key text not null,
  ordinal integer not null,
  body text not null,
  created text not null,
  fault text,
  at integer not null,
  expires_at integer not null,
  primary key (realm_id, client_id, key)
) strict;
create index idempotency_ordinal on idempotency (realm_id, client_id, ordinal);
create index idempotency_expiry on idempotency (expires_at);

create table user_salt (
  realm_id integer not null,
  user_id blob not null,
  salt blob not null,
  primary key (realm_id, user_id)
) strict, without rowid;

create table erasure (
  realm_id text not null,
  user_id text not null,
  at integer not null,
  told_at integer,
  primary key (realm_id, user_id)
) strict, without rowid;
create index erasure_untold on erasure (realm_id, user_id) where told_at is null;

create table sign_in_budget (
  realm_id text not null,
  name text not null,
  kind integer not null,
  source text not null,
  full_at integer not null,
  primary key (realm_id, name, kind, source)
) strict, without rowid;
create index sign_in_budget_full on sign_in_budget (full_at);

create table realm_clock (
  number integer not null,
  realm_id text not null,
  seq integer not null,
  tag blob,
  entries integer,
  anchor_seq integer,
  anchor_tag blob,
  anchor_entries integer,
  anchor_mac blob,
  moved integer not null default 0,
  oidc_profile_count integer not null default 0,
  password_profile_count integer not null default 0,
  user_info_count integer not null default 0,
  primary key (number),
  unique (realm_id)
) strict;
create index realm_clock_moved on realm_clock (moved, realm_id);

create table log_entry (
  realm_id integer not null,
  seq integer not null,
  event integer not null,
  record_id blob,
  revision blob not null,
  members text,
  user_id blob,
  at integer,
  actor text,
  request_id text,
  address text,
  detail blob,
  personal blob,
  tag blob,
  primary key (realm_id, seq)
) strict, without rowid;
create index log_entry_of_user on log_entry (realm_id, user_id, seq) where user_id is not null;

create table act (
  log_id text generated always as ('00000000-0000-0000-0000-000000000000') virtual,
  seq integer not null,
  id text,
  action text not null,
  actor text not null,
  object text,
  realm_id text,
  user_id text,
  address text,
  request_id text,
  detail text not null,
  at integer not null,
  tag blob not null,
  primary key (seq)
) strict;
create index act_of_user on act (realm_id, user_id, seq) where user_id is not null;
create unique index act_id on act (id);
