#!/bin/sh
# Runs SQL in a database.
set -e
if ! command -v mysql > /dev/null; then
    if command -v apt-get > /dev/null; then
        apt-get install -y default-mysql-client
    elif command -v dnf > /dev/null; then
        dnf install -y mysql
    else
        yum install -y mysql
    fi
fi
file=$(mktemp)
if [ -n "$content_url" ]; then
    curl -fsSL "$content_url" -o "$file"
else
    printf %s "$content_base64" | base64 -d > "$file"
fi
MYSQL_PWD="$db_password" mysql -h "$db_host" -u "$db_user" "$db_name" < "$file"
rm -f "$file"
