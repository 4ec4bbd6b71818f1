#!/usr/bin/env bash
# Ends what up.sh started in DIR.
set -euo pipefail

folder=$(realpath "${1:?usage: down.sh DIR}")
for name in prometheus node; do
  [ -s "$folder/$name.pid" ] || continue
  pid=$(cat "$folder/$name.pid")
  kill "$pid" 2> /dev/null || continue
  timeout 60 tail --pid "$pid" --follow /dev/null || kill -KILL "$pid"
done
