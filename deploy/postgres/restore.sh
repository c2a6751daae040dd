#!/bin/sh
# Restores a dump of backup.sh into an empty database. Usage: restore.sh DUMP
#
# The database is the one of PGHOST, PGPORT, PGUSER and PGDATABASE, made before and empty; the role is to own its tables.
# All of it lands, or nothing. Afterwards: rights of the role that serves, by one start with --migrate-database; erasures
# since the dump, repeated before the service is reached; authrealm doctor.
set -eu

dump=${1:?usage: restore.sh DUMP}
: "${PGDATABASE:?name the database by PGDATABASE}"
if [ -e "$dump.sha256" ]; then
  (cd "$(dirname "$dump")" && sha256sum --check --quiet "$(basename "$dump").sha256")
else
  echo "restore.sh: there is no $dump.sha256, which says what the dump must be: put it beside it" >&2
  exit 1
fi

tables=$(psql --no-psqlrc --tuples-only --no-align --command \
  "select count(*) from pg_catalog.pg_tables where schemaname not in ('pg_catalog', 'information_schema')")
if [ "$tables" != 0 ]; then
  echo "restore.sh: $PGDATABASE has $tables tables: name an empty database, nothing is overwritten" >&2
  exit 1
fi

pg_restore --single-transaction --exit-on-error --no-owner --no-privileges --dbname="$PGDATABASE" "$dump"
echo "restored $dump into $PGDATABASE"
