#!/usr/bin/env bash
# SLURM on this host alone: munged, slurmctld and three slurmd (node1 to node3), from Debian's packages, all state below DIR.
#
#     up.sh DIR
#
# All daemons listen on loopback, at ports that were free. It prints SLURM_CONF, which the commands of SLURM read, and
# the folders PIDS and LOGS. There is no accounting and no cgroup. A requeued job waits 10 s (AuthInfo=cred_expire) in
# place of SLURM's 120, and a node that does not answer is down after 10 s (SlurmdTimeout) in place of 300.
set -euo pipefail

skip() {
    echo "$1" >&2
    exit 77
}

[[ $EUID == 0 ]] || skip "SLURM's daemons need root"
dir=$(realpath "${1:?usage: up.sh DIR}")
if ! command -v slurmctld slurmd munged >/dev/null; then
    command -v apt-get >/dev/null || skip "SLURM is not installed, and without apt-get it cannot be"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update && apt-get install --yes --no-install-recommends slurm-wlm munge; } >&2 ||
        skip "apt-get does not install slurm-wlm and munge"
fi

host=$(hostname --short)
mkdir -p "$dir"/{pids,logs,state,munge,spool-node{1,2,3}}
chmod 755 "$dir"

# munged refuses a key or socket below folders that others may write to; --force makes that a warning.
(umask 077 && head --bytes=1024 /dev/urandom >"$dir/munge/key")
munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/pids/munged" \
    --log-file="$dir/logs/munged" --seed-file="$dir/munge/seed" >&2

mapfile -t ports < <(python3 -c '
import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
print(*(one.getsockname()[1] for one in held), sep="\n")')

cat >"$dir/slurm.conf" <<CONF
ClusterName=edgemill
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket,cred_expire=10
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/pids/slurmctld
SlurmctldLogFile=$dir/logs/slurmctld
SlurmdPidFile=$dir/pids/%n
SlurmdLogFile=$dir/logs/%n
SlurmdSpoolDir=$dir/spool-%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
KillWait=30
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
NodeName=node1 NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[1]} CPUs=2 RealMemory=4000
NodeName=node2 NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[2]} CPUs=2 RealMemory=4000
NodeName=node3 NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[3]} CPUs=2 RealMemory=4000
PartitionName=all Nodes=node[1-3] Default=YES MaxTime=INFINITE State=UP
CONF

export SLURM_CONF=$dir/slurm.conf
slurmctld -f "$SLURM_CONF" >&2
for node in node1 node2 node3; do
    slurmd -f "$SLURM_CONF" -N "$node" >&2
done
for ((tries = 0; $(sinfo --noheader --Node --states=idle --format=%n 2>/dev/null | wc -l) < 3; tries++)); do
    if ((tries == 300)); then
        echo "the nodes are not idle after 60 s:" >&2
        sinfo --Node --long >&2 || true
        tail "$dir"/logs/* >&2
        exit 1
    fi
    sleep 0.2
done
cat <<KEYS
SLURM_CONF=$SLURM_CONF
PIDS=$dir/pids
LOGS=$dir/logs
VERSION=$(slurmctld -V)
KEYS
