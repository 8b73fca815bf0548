#!/bin/sh
# Installs packages, from more repositories if some are given.
set -e
number=0
for repo in $repos; do
    number=$((number + 1))
    printf '[kiln-%s]\nname=%s\nbaseurl=%s\nenabled=1\n' "$number" "$repo" "$repo" > "/etc/yum.repos.d/kiln-$number.repo"
done
if command -v dnf > /dev/null; then
    dnf install -y $rpms
else
    yum install -y $rpms
fi
