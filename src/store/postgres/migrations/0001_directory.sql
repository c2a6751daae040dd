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

create table signing_key (
  kid text collate "C" not null primary key,
  public_jwk text collate "C" not null,
  private_sealed bytea not null,
  created_at bigint not null,
  signs_from bigint not null,
  withdrawn_at bigint
);

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
  revision text collate "C" not null
);

create table client_realm (
  client_id text collate "C" not null references client (client_id),
  realm_id uuid not null,
  primary key (client_id, realm_id)
);

-- Realm data: every key begins with the realm.

create table realm (
  realm_id uuid not null primary key,
  name text collate "C" not null,
  redirect_uris text collate "C" not null,
  duplicate_email_policy text collate "C" not null,
  origin text collate "C",
  preset integer not null,
  created_at bigint not null,
  updated_at bigint not null,
  revision text collate "C" not null
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
  primary key (realm_id, id),
  foreign key (realm_id, user_id) references user_info (realm_id, id),
  foreign key (realm_id, password_profile_id) references password_profile (realm_id, id)
);

create unique index password_profile_info_username
  on password_profile_info (realm_id, password_profile_id, username_key);
create index password_profile_info_of_user on password_profile_info (realm_id, user_id, created_at, id);
create index password_profile_info_by_username on password_profile_info (realm_id, username_key);
create index password_profile_info_of_profile on password_profile_info (realm_id, password_profile_id, created_at, id);

-- Records that are being removed by many commits: absent for everybody, and nothing lands below them.

create table purge (
  realm_id uuid not null,
  id uuid not null,
  resource text collate "C" not null,
  since bigint not null,
  primary key (realm_id, id, resource)
);

-- Answers that are kept for a repetition of their request. They hold what a caller was told, so they are encrypted,
-- and go with the user they tell about. `ordinal` counts what a client had remembered, so that its oldest is found;
-- two that were remembered at once in two realms may share one.

create table idempotency (
  realm_id uuid not null,
  client_id text collate "C" not null,
  key text collate "C" not null,
  ordinal bigint not null,
  body text collate "C" not null,
  status integer not null,
  record_id uuid,
  user_id uuid,
  answer_sealed bytea not null,
  at bigint not null,
  expires_at bigint not null,
  primary key (realm_id, client_id, key)
);

create index idempotency_ordinal on idempotency (client_id, ordinal);
create index idempotency_expiry on idempotency (expires_at);
create index idempotency_of_user on idempotency (realm_id, user_id) where user_id is not null;
create index idempotency_of_record on idempotency (realm_id, record_id) where record_id is not null;

-- The feed: no foreign key, it outlives the realm. Who writes in a realm claims its clock first, so that order of
-- `seq` is order of commit.

create table realm_clock (
  realm_id uuid not null primary key,
  seq bigint not null
);

create table change (
  realm_id uuid not null,
  seq bigint not null,
  event text collate "C" not null,
  user_id uuid,
  record_id uuid not null,
  revision text collate "C" not null,
  members text collate "C" not null,
  actor text collate "C" not null,
  request_id text collate "C",
  at bigint not null,
  primary key (realm_id, seq)
);
