#!/bin/sh
# Gives the database to applications as system properties.
set -e
options="-Ddb.host=$db_host -Ddb.user=$db_user -Ddb.password=$db_password -Ddb.name=$db_name"
for file in /etc/default/@KIND@* /etc/sysconfig/@KIND@*; do
    if [ -f "$file" ]; then
        sed -i '/# kiln: database$/d' "$file"
        printf 'JAVA_OPTS="$JAVA_OPTS %s" # kiln: database\n' "$options" >> "$file"
    fi
done
for unit in @KIND@10 @KIND@9 @KIND@; do
    if systemctl list-unit-files "$unit.service" | grep -q "^$unit"; then
        systemctl restart "$unit"
    fi
done
