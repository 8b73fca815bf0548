#!/bin/sh
# Runs a script that was given or is downloaded; as_user is empty for root.
set -e
file=$(mktemp)
if [ -n "$content_url" ]; then
    curl -fsSL "$content_url" -o "$file"
else
    printf %s "$content_base64" | base64 -d > "$file"
fi
chmod 755 "$file"
if [ -n "$as_user" ]; then
    su -s /bin/sh "$as_user" -c "$file"
else
    "$file"
fi
rm -f "$file"
