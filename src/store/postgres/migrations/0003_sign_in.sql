-- serves: 1
-- Sign-in by password. Of a client with the scope sign-in: whether its requests report the address of the end user.

alter table client add column end_user_address text collate "C";

-- The revision of the write that set the password of a link: tokens of a sign-in name it, and end with the password. Null where a
-- release before this one set it.

alter table password_profile_info add column credential_version text collate "C";

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

-- The settings of account members, as JSON. A release before this one leaves them as they are.

alter table realm add column account_settings text collate "C";
