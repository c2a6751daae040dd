-- serves: 1
-- The log of each realm. IDs and revisions are stored as bytes, and events as numbers (src/domain/event.ts); a record_id is left
-- out where it is that of the user, or else of the realm. Consecutive entries of one commit about one user, or none, with the
-- same origin are a run: the last of them holds user_id, at, actor, request_id and address for all. `detail` and `personal`
-- hold values before and after (src/audit/packed_detail.ts), the latter encrypted under the key of the user. The tag is an HMAC
-- over the tag before it and the entry that these columns describe, whatever their encoding. An entry of release 0.1.0 has no
-- values, and no tag until the next write in its realm.

create table log_entry (
  realm_id blob not null,
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

-- Running programs of release 0.1.0 insert into `change`, and do not read it: each row becomes an entry in the commit that
-- writes it.

alter table change rename to change_of_0_1;

create view change (realm_id, seq, event, user_id, record_id, revision, members, actor, request_id, at) as
  select null, null, null, null, null, null, null, null, null, null where false;

create trigger change_to_log_entry instead of insert on change begin
  insert into log_entry (realm_id, seq, event, record_id, revision, members, user_id, at, actor, request_id)
  values (
    unhex(replace(new.realm_id, '-', '')),
    new.seq,
    case substr(new.event, 1, instr(new.event, '.') - 1)
      when 'authentication-realm' then 8
      when 'oidc-profile' then 16
      when 'password-profile' then 24
      when 'user-authentication-info' then 32
      when 'user-authentication-oidc-profile-info' then 40
      when 'user-authentication-password-profile-info' then 48
    end + case substr(new.event, instr(new.event, '.') + 1)
      when 'created' then 1
      when 'updated' then 2
      when 'deleted' then 3
    end,
    unhex(replace(nullif(new.record_id, coalesce(new.user_id, new.realm_id)), '-', '')),
    unhex(new.revision),
    nullif(new.members, ''),
    unhex(replace(new.user_id, '-', '')),
    new.at,
    new.actor,
    new.request_id
  );
end;

insert into change
  select realm_id, seq, event, user_id, record_id, revision, members, actor, request_id, at
  from change_of_0_1 order by realm_id, seq;
drop table change_of_0_1;
create index log_entry_of_user on log_entry (realm_id, user_id, seq) where user_id is not null;

-- How far the log of a realm is chained, and how many entries that came to; where the chain begins, which moves when
-- entries become too old. The nil UUID has the log of the installation.

alter table realm_clock add column tagged_seq integer;
alter table realm_clock add column tag blob;
alter table realm_clock add column entries integer;
alter table realm_clock add column anchor_seq integer;
alter table realm_clock add column anchor_tag blob;
alter table realm_clock add column anchor_entries integer;
alter table realm_clock add column anchor_mac blob;

-- Where the clock of a realm stands in the order in which clocks moved. It orders nothing exactly: it finds the clocks that
-- moved lately. Releases before this one leave it as it is.

alter table realm_clock add column moved integer not null default 0;
create index realm_clock_moved on realm_clock (moved, realm_id);

-- How many records a realm has in each table directly below it, valid while `counted_seq` equals `seq`: the total of a list. A
-- release before this one advances `seq` alone; the next start of this one then counts the rows.

alter table realm_clock add column counted_seq integer not null default 0;
alter table realm_clock add column oidc_profile_count integer not null default 0;
alter table realm_clock add column password_profile_count integer not null default 0;
alter table realm_clock add column user_info_count integer not null default 0;

create table act (
  seq integer not null primary key,
  id text unique,
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
  log_id text generated always as ('00000000-0000-0000-0000-000000000000') virtual
) strict;

create index act_of_user on act (realm_id, user_id, seq) where user_id is not null;

-- A client's stored answers are counted in each realm.

drop index idempotency_ordinal;
create index idempotency_ordinal on idempotency (realm_id, client_id, ordinal);

-- The words of names, e-mail addresses and usernames, for searches by their beginnings (docs/decisions/0015-lists-and-search.md). The
-- program computes them, with a space between two; null in a row that release 0.1.0 wrote. Triggers write one row for each. (`or
-- ignore` in a trigger does not hold for a statement with `on conflict`.)

alter table user_info add column words text;

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

alter table password_profile_info add column words text;

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

-- The prefix of the merchant realm mapping. A release before this one leaves it as it is.

alter table realm add column prefix text;

-- Secrets of the installation, sealed by the master key.

create table instance_secret (
  name text not null primary key,
  sealed blob not null,
  created_at integer not null
) strict;

-- What the ID of a client alone gives, as JSON; null in rows from before.

alter table client add column implicit text;

-- HMACs over the rows that grant access and over password hashes, under a key that the master key opens. The first start with
-- the key fills in those of clients and signing keys; a row that another program writes has none, and is not honoured.

alter table client add column mac blob;
alter table client_realm add column mac blob;
alter table signing_key add column mac blob;
alter table password_profile_info add column password_hash_mac blob;

-- What the personal values in the log are encrypted under: a key is made of the salt and a secret of the installation.
-- Without the salt nobody reads them. A user who was erased has none; what is left is that it happened.

create table user_salt (
  realm_id blob not null,
  user_id blob not null,
  salt blob not null,
  primary key (realm_id, user_id)
) strict, without rowid;

create table erasure (
  realm_id text not null,
  user_id text not null,
  at integer not null,
  scrubbed_at integer,
  told_at integer,
  primary key (realm_id, user_id)
) strict, without rowid;

create index erasure_untold on erasure (realm_id, user_id) where told_at is null;

-- Tokens that were taken back before they expired, and when each client last asked for one.

create table revoked_token (
  jti text not null primary key,
  client_id text not null,
  expires_at integer not null
) strict, without rowid;

create index revoked_token_expiry on revoked_token (expires_at);

create table client_use (
  client_id text not null primary key,
  at integer not null
) strict, without rowid;

-- Links to the console that were not followed yet: of the one-time code of each its digest alone.

create table console_link (
  digest text not null primary key,
  label text not null,
  scopes text not null,
  realms text not null,
  expires_at integer not null,
  mac blob
) strict, without rowid;

create index console_link_expiry on console_link (expires_at);

-- Sessions of the console that were begun by a link or a provider and have not ended. `rules` has keyed digests of the rights of
-- the issuer that a person's claims met; it is empty for a link. A token lasts 15 minutes from its renewal.

create table console_session (
  session_id text not null primary key,
  actor text not null,
  scopes text not null,
  realms text not null,
  rules text not null,
  begun_at integer not null,
  renewed_at integer not null,
  ends_at integer not null,
  mac blob
) strict, without rowid;

create index console_session_renewal on console_session (renewed_at);

-- Where changes are sent, how far each receiver is in each realm, what was tried, and what was given up.

create table webhook (
  webhook_id text not null primary key,
  name text not null,
  url text not null,
  events text not null,
  all_realms integer not null,
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
  mac blob
) strict;

create table webhook_realm (
  webhook_id text not null references webhook (webhook_id),
  realm_id text not null,
  primary key (webhook_id, realm_id)
) strict, without rowid;

create table webhook_progress (
  webhook_id text not null references webhook (webhook_id),
  realm_id text not null,
  seq integer not null,
  attempts integer not null,
  next_at integer not null,
  failed_seq integer not null,
  behind_since integer not null default 0,
  primary key (webhook_id, realm_id)
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

create table dead_letter (
  webhook_id text not null,
  realm_id text not null,
  first_seq integer not null,
  last_seq integer not null,
  attempts integer not null,
  at integer not null,
  redelivered_at integer,
  primary key (webhook_id, realm_id, first_seq)
) strict, without rowid;

create index dead_letter_waiting on dead_letter (webhook_id, realm_id, first_seq) where attempts = 0;
create index dead_letter_left on dead_letter (webhook_id) where redelivered_at is null;

-- What one process at a time does for all of them.

create table lease (
  name text not null primary key,
  holder text not null,
  until integer not null
) strict, without rowid;
