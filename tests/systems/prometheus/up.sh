#!/usr/bin/env bash
# Starts Prometheus and its node_exporter on 127.0.0.1, from Debian's packages unpacked below DIR: nothing is installed. Prometheus
# has edgemill's rules and looks for targets in a file. Prints URL, TARGETS (that file), TEXTFILES (the
# folder that node_exporter reads), RULES and PROMTOOL.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
folder=$(realpath "${1:?usage: up.sh DIR}")
packages=(prometheus prometheus-node-exporter)

[ "$(id --user)" = 0 ] || { echo "make systems runs as root on Debian" >&2; exit 77; }
command -v apt-get > /dev/null || { echo "this machine has no apt-get: it is not Debian" >&2; exit 77; }
mkdir -p "$folder/packages" "$folder/textfiles" "$folder/rules"
(cd "$folder/packages" && apt-get download "${packages[@]}" > "$folder/apt.log" 2>&1) ||
  { echo "apt-get cannot download ${packages[*]}: $(grep -m 1 '^E:' "$folder/apt.log")" >&2; exit 77; }
for package in "$folder"/packages/*.deb; do
  dpkg --extract "$package" "$folder/root"
done

read -r own node < <(python3 - << 'PYTHON'
import socket
held = [socket.socket() for _ in range(2)]
for one in held:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in held))
PYTHON
)
cp "$here/../../../configs/monitoring/rules.yaml" "$here/rules.test.yaml" "$folder/rules"
echo '[]' > "$folder/targets.json"
cat > "$folder/prometheus.yaml" << CONFIGURATION
global: { scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s }
rule_files: [rules/rules.yaml]
scrape_configs:
  - job_name: edgemill
    file_sd_configs: [{ files: [targets.json], refresh_interval: 1s }]
  - job_name: node
    static_configs: [{ targets: ["127.0.0.1:$node"] }]
CONFIGURATION

"$folder/root/usr/bin/prometheus-node-exporter" --collector.disable-defaults --collector.textfile \
  --collector.textfile.directory "$folder/textfiles" --web.listen-address "127.0.0.1:$node" \
  > "$folder/node.log" 2>&1 < /dev/null &
echo $! > "$folder/node.pid"
"$folder/root/usr/bin/prometheus" --config.file "$folder/prometheus.yaml" --storage.tsdb.path "$folder/tsdb" \
  --web.listen-address "127.0.0.1:$own" > "$folder/prometheus.log" 2>&1 < /dev/null &
echo $! > "$folder/prometheus.pid"
curl --silent --fail --output /dev/null --retry 60 --retry-delay 1 --retry-connrefused "http://127.0.0.1:$own/-/ready" ||
  { echo "Prometheus does not answer" >&2; tail -n 20 "$folder/prometheus.log" >&2; exit 1; }
cat << VALUES
URL=http://127.0.0.1:$own
TARGETS=$folder/targets.json
TEXTFILES=$folder/textfiles
RULES=$folder/rules
PROMTOOL=$folder/root/usr/bin/promtool
VALUES
