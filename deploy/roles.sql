-- Two roles: the owner of the tables and the serving role (docs/guides/postgresql.md, Two roles). psql runs this file in the
-- PostgreSQL container when its database is created.

\set owner_password `cat /run/secrets/owner_password`
\set database_password `cat /run/secrets/database_password`

create role authrealm_owner login password :'owner_password';
create role authrealm login password :'database_password';
create schema authrealm authorization authrealm_owner;
alter role authrealm_owner set search_path = authrealm;
alter role authrealm set search_path = authrealm;
revoke create on schema public from public;
