#!/usr/bin/env bash
# Starts a Ceph cluster of one monitor, one OSD (BlueStore in a sparse file) and one RADOS gateway on 127.0.0.1, all below
# DIR, and a user for S3. Prints ENDPOINT, KEY and SECRET for clients, and CONF
# and PID_FILE, with which `radosgw --conf CONF --name client.rgw` starts the gateway again.
set -euo pipefail

folder=$(realpath "${1:?usage: up.sh DIR}")
conf=$folder/ceph.conf
packages=(ceph-mon ceph-osd radosgw)

[ "$(id --user)" = 0 ] || { echo "Debian's packages are installed as root" >&2; exit 77; }
command -v apt-get > /dev/null || { echo "this machine has no apt-get: it is not Debian" >&2; exit 77; }
if ! dpkg --status "${packages[@]}" > /dev/null 2>&1; then
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${packages[@]}" > "$folder/apt.log" 2>&1 ||
    { echo "apt-get cannot install ${packages[*]}: $(grep -m 1 '^E:' "$folder/apt.log")" >&2; exit 77; }
fi

read -r v2 v1 s3 < <(python3 - << 'PYTHON'
import socket
held = [socket.socket() for _ in range(3)]
for one in held:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in held))
PYTHON
)
fsid=$(cat /proc/sys/kernel/random/uuid)
addresses="[v2:127.0.0.1:$v2,v1:127.0.0.1:$v1]"
mkdir -p "$folder/mon" "$folder/osd" "$folder/rgw"
cat > "$conf" << CONF
[global]
fsid = $fsid
mon_host = $addresses
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
keyring = $folder/keyring
log_file = $folder/\$name.log
run_dir = $folder
pid_file = $folder/\$name.pid
admin_socket =
crash_dir = $folder
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_warn_on_pool_no_redundancy = false
[mon]
mon_data = $folder/mon
mon_data_avail_warn = 2
mon_data_avail_crit = 1
[osd]
osd_data = $folder/osd
osd_objectstore = bluestore
osd_memory_target = 939524096
bluestore_block_size = 8589934592
[client.rgw]
rgw_data = $folder/rgw
rgw_frontends = beast endpoint=127.0.0.1:$s3
rgw_rados_pool_pg_num_min = 4
rgw_enable_usage_log = false
rgw_thread_pool_size = 32
CONF

start() {
  set -e
  monmaptool --create --fsid "$fsid" --addv a "$addresses" "$folder/monmap"
  all=(--cap mon "allow *" --cap osd "allow *")
  ceph-authtool --create-keyring "$folder/keyring" --gen-key --name mon. --cap mon "allow *"
  for name in client.admin client.rgw osd.0; do
    ceph-authtool "$folder/keyring" --gen-key --name "$name" "${all[@]}"
  done
  ceph-mon --conf "$conf" --id a --mkfs --monmap "$folder/monmap" --keyring "$folder/keyring"
  ceph-mon --conf "$conf" --id a
  osd=$(cat /proc/sys/kernel/random/uuid)
  ceph --conf "$conf" osd new "$osd"
  ceph-osd --conf "$conf" --id 0 --mkfs --osd-uuid "$osd"
  ceph-osd --conf "$conf" --id 0
  radosgw --conf "$conf" --name client.rgw
  radosgw-admin --conf "$conf" --name client.rgw user create --uid edgemill --display-name edgemill > "$folder/user.json"
}
export folder fsid addresses conf
export -f start
timeout 240 bash -c start > "$folder/up.log" 2>&1 < /dev/null ||
  { echo "the cluster does not start:" >&2; tail -n 20 "$folder/up.log" >&2; exit 1; }

endpoint=http://127.0.0.1:$s3
curl --silent --fail --output /dev/null --retry 120 --retry-delay 1 --retry-connrefused "$endpoint" ||
  { echo "the gateway does not answer at $endpoint" >&2; tail -n 20 "$folder/client.rgw.log" >&2; exit 1; }
python3 - "$folder/user.json" << 'PYTHON'
import json, sys
(keys,) = json.load(open(sys.argv[1]))["keys"]
print(f"KEY={keys['access_key']}\nSECRET={keys['secret_key']}")
PYTHON
cat << VALUES
ENDPOINT=$endpoint
CONF=$conf
PID_FILE=$folder/client.rgw.pid
VALUES
