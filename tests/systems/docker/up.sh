#!/usr/bin/env bash
# up.sh DIR: Debian 13's Docker with Compose and BuildKit, in mount, network and PID namespaces of its own.
#
# The host gets no daemon, bridge, firewall rule or mount. Registries are not needed: the image edgemill-base stands in for
# the Dockerfile's base, as the build context `python`. DEBIAN_MIRROR names another mirror.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../../.." && pwd)
folder=${1:?usage: up.sh DIR}
root=$folder/root
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

cannot() {
    echo "$1" >&2
    exit 77
}
[ "$(id -u)" = 0 ] || cannot "needs root"
command -v apt-get >/dev/null || cannot "needs Debian's apt-get"
unshare --mount --net --pid --fork true 2>/dev/null || cannot "no namespaces can be made here"
grep -qw overlay /proc/filesystems || cannot "the kernel has no overlay file system"
[ -c /dev/net/tun ] || cannot "there is no /dev/net/tun"

export DEBIAN_FRONTEND=noninteractive
{
    apt-get -o DPkg::Lock::Timeout=600 install --yes --no-install-recommends debootstrap debian-archive-keyring slirp4netns util-linux
    debootstrap --variant=minbase trixie "$root" "$mirror"
    install_in_root() { chroot "$root" apt-get install --yes --no-install-recommends "$@"; }
    install_in_root ca-certificates openssl python3 python3-pip python3-venv
    for name in python python3; do ln -s /usr/bin/python3 "$root/usr/local/bin/$name"; done # where Docker's base has them
    find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$root/usr/local/share/ca-certificates/" \; # a proxy's
    chroot "$root" update-ca-certificates
    tar --create --directory "$root" --exclude './var/cache/apt/*' --file "$folder/base.tar" .
    install_in_root docker.io docker-cli docker-compose docker-buildx iptables
} >"$folder/install.log" 2>&1 || { tail -5 "$folder/install.log" >&2; exit 1; }

mkfifo "$folder/connected"
unshare --mount --net --pid --ipc --uts --fork --kill-child \
    bash "$here/engine.sh" "$root" "$checkout" "$folder/connected" >"$folder/dockerd.log" 2>&1 &
echo $! >"$folder/unshare.pid"
until engine=$(pgrep --parent "$(cat "$folder/unshare.pid")"); do kill -0 "$(cat "$folder/unshare.pid")"; done
echo "$engine" >"$folder/engine.pid"
mkfifo "$folder/ready"
slirp4netns --configure --disable-host-loopback --mtu 1400 --ready-fd 3 "$engine" tap0 3>"$folder/ready" >"$folder/network.log" 2>&1 &
echo $! >"$folder/network.pid"
read -r -n 1 <"$folder/ready"
echo yes >"$folder/connected"

inside=(nsenter --target "$engine" --mount --net --pid --ipc --uts)
for ((tries = 0; ; tries++)); do
    "${inside[@]}" docker info >/dev/null 2>&1 && break
    if [ "$tries" = 600 ] || ! kill -0 "$engine"; then
        tail -5 "$folder/dockerd.log" >&2
        exit 1
    fi
    sleep 0.2
done
"${inside[@]}" docker import --change 'ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt' - edgemill-base:latest \
    <"$folder/base.tar" >/dev/null
rm "$folder/base.tar"
echo "ENTER=${inside[*]}"
echo "ROOT=$root"
echo "CHECKOUT=$checkout"
echo "DOCKER=$("${inside[@]}" docker version --format '{{.Server.Version}}')"
