#!/bin/sh
# Dumps the database into FOLDER, as of one moment, while the service runs. Usage: backup.sh FOLDER [DAYS]
#
# The database is the one of PGHOST, PGPORT, PGUSER and PGDATABASE, the password that of PGPASSFILE. The role must read
# every table: the one that owns them does. A dump has its name only when it is complete, read back and on the disk. With
# DAYS the dumps of this database that this script made and that are older go afterwards.
set -eu
umask 077

folder=${1:?usage: backup.sh FOLDER [DAYS]}
days=${2:-}
name=${PGDATABASE:?name the database by PGDATABASE}
case $days in '' | [1-9] | [1-9][0-9] | [1-9][0-9][0-9]) ;; *)
  echo "backup.sh: DAYS must be a number, 1 to 999" >&2
  exit 2
  ;;
esac

dump=$folder/$name-$(date -u +%Y%m%dT%H%M%SZ).dump
if [ -e "$dump" ]; then
  echo "backup.sh: $dump is there already, and nothing is overwritten" >&2
  exit 1
fi
draft=$dump.partial
trap 'rm -f "$draft"' EXIT

# Rights are those of the database that it is restored into.
pg_dump --format=custom --no-owner --no-privileges --file="$draft"
# Reads every byte of it back.
pg_restore --file=/dev/null "$draft"
sync "$draft"
ln "$draft" "$dump"
(cd "$folder" && sha256sum "$(basename "$dump")") >"$dump.sha256"
sync "$dump.sha256" "$folder"
echo "$dump"

if [ -n "$days" ]; then
  find "$folder" -maxdepth 1 -type f -mtime "+$((days - 1))" \
    \( -name "$name-[0-9]*T[0-9]*Z.dump" -o -name "$name-[0-9]*T[0-9]*Z.dump.sha256" \) -print -delete
fi
