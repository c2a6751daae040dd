#!/bin/sh
# Restores a dump of backup.sh into an empty database. Usage: restore.sh DUMP
#
# PGHOST, PGPORT, PGUSER and PGDATABASE name an existing, empty database; the role will own its tables. The restore is one
# transaction. Afterwards: grant privileges to the serving role by authrealm migrate --migrate-database; repeat erasures since
# the dump before callers reach the service; run authrealm doctor.
set -eu

dump=${1:?usage: restore.sh DUMP}
: "${PGDATABASE:?set PGDATABASE to the name of the database}"
if [ -e "$dump.sha256" ]; then
  (cd "$(dirname "$dump")" && sha256sum --check --quiet "$(basename "$dump").sha256")
else
  echo "restore.sh: $dump.sha256, the checksum of the dump, is missing: put it next to the dump" >&2
  exit 1
fi

tables=$(psql --no-psqlrc --tuples-only --no-align --command \
  "select count(*) from pg_catalog.pg_tables where schemaname not in ('pg_catalog', 'information_schema')")
if [ "$tables" != 0 ]; then
  echo "restore.sh: $PGDATABASE has $tables tables: set PGDATABASE to an empty database; nothing is overwritten" >&2
  exit 1
fi

pg_restore --single-transaction --exit-on-error --no-owner --no-privileges --dbname="$PGDATABASE" "$dump"
echo "restored $dump into $PGDATABASE"
