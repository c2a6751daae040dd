#!/bin/sh
# Dumps one consistent snapshot of the database into FOLDER while the service runs. Usage: backup.sh FOLDER [DAYS]
#
# PGHOST, PGPORT, PGUSER and PGDATABASE name the database, PGPASSFILE the password. The role must be able to read every
# table, as their owner can. A dump gets its name when it is complete, read back and synced. With DAYS, older dumps of this
# database that this script made are deleted afterwards.
set -eu
umask 077

folder=${1:?usage: backup.sh FOLDER [DAYS]}
days=${2:-}
name=${PGDATABASE:?set PGDATABASE to the name of the database}
case $days in '' | [1-9] | [1-9][0-9] | [1-9][0-9][0-9]) ;; *)
  echo "backup.sh: DAYS must be a number, 1 to 999" >&2
  exit 2
  ;;
esac

dump=$folder/$name-$(date -u +%Y%m%dT%H%M%SZ).dump
if [ -e "$dump" ]; then
  echo "backup.sh: $dump already exists, and nothing is overwritten" >&2
  exit 1
fi
draft=$dump.partial
trap 'rm -f "$draft"' EXIT

# Privileges are those of the database that it is restored into.
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
