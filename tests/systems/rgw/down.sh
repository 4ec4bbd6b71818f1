#!/usr/bin/env bash
# Ends the daemons that up.sh started in DIR. Packages stay installed.
set -euo pipefail

folder=$(realpath "${1:?usage: down.sh DIR}")
for name in client.rgw osd.0 mon.a; do
  file=$folder/$name.pid
  [ -s "$file" ] || continue
  pid=$(cat "$file")
  kill "$pid" 2> /dev/null || continue
  timeout 60 tail --pid "$pid" --follow /dev/null || kill -KILL "$pid"
done
