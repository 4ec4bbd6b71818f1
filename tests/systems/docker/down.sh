#!/usr/bin/env bash
# down.sh DIR: ends dockerd with all of its containers, and removes its images, volumes and groups.
set -euo pipefail
folder=${1:?usage: down.sh DIR}

pid() { cat "$folder/$1.pid" 2>/dev/null || true; }
engine=$(pid engine) network=$(pid network) outer=$(pid unshare)
if [ -n "$engine" ] && kill -TERM "$engine" 2>/dev/null; then
    timeout 60 tail --pid "$engine" --follow /dev/null || kill -KILL "$engine"
fi
for one in $network $outer; do
    kill -KILL "$one" 2>/dev/null || true
done
for one in $engine $network $outer; do
    timeout 60 tail --pid "$one" --follow /dev/null
done
for group in edgemill-systems docker; do # BuildKit makes the second; those in use cannot be removed
    find /sys/fs/cgroup -depth -type d \( -path "*/$group" -o -path "*/$group/*" \) -exec rmdir {} \; 2>/dev/null || true
done
rm --recursive --force --one-file-system "$folder/root"
