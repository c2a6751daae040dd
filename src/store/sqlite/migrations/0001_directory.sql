-- Instance tables: of the installation as a whole, not of a realm.

create table instance (
  singleton integer not null primary key check (singleton = 1),
  store_id text not null,
  access_version integer not null
) strict;

create table keyring (
  key_id text not null primary key,
  sealed blob not null,
  created_at integer not null
) strict;

create table signing_key (
  kid text not null primary key,
  public_jwk text not null,
  private_sealed blob not null,
  created_at integer not null,
  signs_from integer not null,
  withdrawn_at integer
) strict;

create table client (
  client_id text not null primary key,
  name text not null,
  scopes text not null,
  all_realms integer not null,
  disabled_at integer,
  secret_digest blob not null,
  previous_digest blob,
  previous_expires_at integer,
  created_at integer not null,
  updated_at integer not null,
  revision text not null
) strict;

create table client_realm (
  client_id text not null references client (client_id),
  realm_id text not null,
  primary key (client_id, realm_id)
) strict, without rowid;

-- Realm data: every key begins with the realm. A record lies in a slot that its identifier names.

create table realm (
  slot integer not null primary key,
  realm_id text not null unique,
  name text not null,
  redirect_uris text not null,
  duplicate_email_policy text not null,
  origin text,
  preset integer not null,
  created_at integer not null,
  updated_at integer not null,
  revision text not null
) strict;

create index realm_created on realm (created_at, realm_id);

create table oidc_profile (
  slot integer not null primary key,
  realm_id text not null references realm (realm_id),
  id text not null,
  name text not null,
  discovery_url text not null,
  client_id text not null,
  client_secret_sealed blob,
  issuer text not null,
  created_at integer not null,
  updated_at integer not null,
  revision text not null,
  unique (realm_id, id)
) strict;

create index oidc_profile_created on oidc_profile (realm_id, created_at, id);

create table password_profile (
  slot integer not null primary key,
  realm_id text not null references realm (realm_id),
  id text not null,
  name text not null,
  username_format text not null,
  enable_one_time_password_token integer not null,
  created_at integer not null,
  updated_at integer not null,
  revision text not null,
  unique (realm_id, id)
) strict;

create index password_profile_created on password_profile (realm_id, created_at, id);

create table user_info (
  slot integer not null primary key,
  realm_id text not null references realm (realm_id),
  id text not null,
  name text not null,
  email text not null,
  given_name text,
  middle_name text,
  family_name text,
  creation_status text not null,
  name_key text not null,
  email_key text not null,
  given_name_key text,
  middle_name_key text,
  family_name_key text,
  unicode_version text not null,
  created_at integer not null,
  updated_at integer not null,
  revision text not null,
  unique (realm_id, id)
) strict;

create index user_info_created on user_info (realm_id, created_at, id);
create index user_info_updated on user_info (realm_id, updated_at, id);
create index user_info_name on user_info (realm_id, name_key);
create index user_info_email on user_info (realm_id, email_key);

create table oidc_profile_info (
  slot integer not null primary key,
  realm_id text not null,
  user_id text not null,
  id text not null,
  subject text not null,
  issuer text not null,
  oidc_profile_id text not null,
  subject_crc integer not null,
  created_at integer not null,
  updated_at integer not null,
  revision text not null,
  unique (realm_id, id),
  foreign key (realm_id, user_id) references user_info (realm_id, id),
  foreign key (realm_id, oidc_profile_id) references oidc_profile (realm_id, id)
) strict;

create unique index oidc_profile_info_identity on oidc_profile_info (realm_id, issuer, subject);
create index oidc_profile_info_subject_crc on oidc_profile_info (subject_crc);
create index oidc_profile_info_of_user on oidc_profile_info (realm_id, user_id, created_at, id);
create index oidc_profile_info_of_profile on oidc_profile_info (realm_id, oidc_profile_id, created_at, id);

create table password_profile_info (
  slot integer not null primary key,
  realm_id text not null,
  user_id text not null,
  id text not null,
  username text not null,
  password_profile_id text not null,
  password_hash text,
  password_normalised integer,
  username_key text not null,
  unicode_version text not null,
  username_crc integer not null,
  created_at integer not null,
  updated_at integer not null,
  revision text not null,
  unique (realm_id, id),
  foreign key (realm_id, user_id) references user_info (realm_id, id),
  foreign key (realm_id, password_profile_id) references password_profile (realm_id, id)
) strict;

create unique index password_profile_info_username
  on password_profile_info (realm_id, password_profile_id, username_key);
create index password_profile_info_of_user on password_profile_info (realm_id, user_id, created_at, id);
create index password_profile_info_username_crc on password_profile_info (username_crc);
create index password_profile_info_by_username on password_profile_info (realm_id, username_key);
create index password_profile_info_of_profile on password_profile_info (realm_id, password_profile_id, created_at, id);

-- Records that are being removed by many commits: absent for everybody, and nothing lands below them.

create table purge (
  realm_id text not null,
  id text not null,
  resource text not null,
  since integer not null,
  primary key (realm_id, id, resource)
) strict, without rowid;

-- Answers that are kept for a repetition of their request. They hold what a caller was told, so they are encrypted,
-- and go with the user they tell about. `ordinal` counts what a client had remembered, so that its oldest is found.

create table idempotency (
  realm_id text not null,
  client_id text not null,
  key text not null,
  ordinal integer not null,
  body text not null,
  status integer not null,
  record_id text,
  user_id text,
  answer_sealed blob not null,
  at integer not null,
  expires_at integer not null,
  primary key (realm_id, client_id, key)
) strict;

create unique index idempotency_ordinal on idempotency (client_id, ordinal);
create index idempotency_expiry on idempotency (expires_at);
create index idempotency_of_user on idempotency (realm_id, user_id) where user_id is not null;
create index idempotency_of_record on idempotency (realm_id, record_id) where record_id is not null;

-- The feed: no foreign key, it outlives the realm. `seq` is taken from the realm's clock as the last statements of a
-- transaction, so that order of `seq` is order of commit.

create table realm_clock (
  realm_id text not null primary key,
  seq integer not null
) strict, without rowid;

create table change (
  realm_id text not null,
  seq integer not null,
  event text not null,
  user_id text,
  record_id text not null,
  revision text not null,
  members text not null,
  actor text not null,
  request_id text,
  at integer not null,
  primary key (realm_id, seq)
) strict, without rowid;
