#!/bin/sh
# Puts an application where the application server finds it.
set -e
file=$(mktemp)
if [ -n "$content_url" ]; then
    curl -fsSL "$content_url" -o "$file"
else
    printf %s "$content_base64" | base64 -d > "$file"
fi
for folder in /var/lib/tomcat10/webapps /var/lib/tomcat9/webapps /var/lib/tomcat/webapps /var/lib/jetty9/webapps \
        /var/lib/jetty/webapps; do
    if [ -d "$folder" ]; then
        install -m 644 "$file" "$folder/ROOT.war"
        rm -f "$file"
        exit 0
    fi
done
echo "No application server is installed." >&2
exit 1
