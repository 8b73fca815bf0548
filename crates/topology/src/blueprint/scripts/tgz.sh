#!/bin/sh
# Unpacks an archive that was given or is downloaded.
set -e
mkdir -p "$target"
if [ -n "$content_url" ]; then
    curl -fsSL "$content_url" | tar xz -C "$target"
else
    printf %s "$content_base64" | base64 -d | tar xz -C "$target"
fi
