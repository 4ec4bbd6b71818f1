#!/usr/bin/env bash
# Ends the SLURM that up.sh started: its jobs, then its daemons.
#
#     down.sh DIR
set -euo pipefail

dir=$(realpath "${1:?usage: down.sh DIR}")
export SLURM_CONF=$dir/slurm.conf
running() { pgrep --pidfile "$1" >/dev/null 2>&1; }

if running "$dir/pids/slurmctld"; then
    timeout 20 scancel --quiet --user=root || true
    for ((tries = 0; tries < 150; tries++)); do
        [[ -n $(timeout 20 squeue --noheader || true) ]] || break
        sleep 0.2
    done
fi
for name in node1 node2 node3 slurmctld munged; do
    file=$dir/pids/$name
    running "$file" || continue
    pid=$(<"$file")
    kill "$pid"
    for ((tries = 0; tries < 150; tries++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.2
    done
    kill -KILL "$pid" 2>/dev/null || true
done
# What a node that was killed has left behind.
for daemon in slurmstepd slurmd; do
    pkill -KILL --full "^$daemon.*$dir" || true
done
