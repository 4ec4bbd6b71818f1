#!/usr/bin/env bash
# engine.sh ROOT CHECKOUT CONNECTED: makes ROOT the root of these namespaces, with CHECKOUT in it under its own path, and
# runs dockerd there once the pipe CONNECTED says that the network is up. The mounts go with the last process.
set -euo pipefail
root=$1 checkout=$2 connected=$3

mount --make-rprivate /
mount --bind "$root" "$root" # pivot_root and dockerd want a mount point
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mkdir -p "$root$checkout" "$root/before"
mount --bind "$checkout" "$root$checkout"
mount -o remount,bind,ro "$root$checkout"
echo "nameserver 10.0.2.3" >"$root/etc/resolv.conf" # slirp4netns's, which asks the host's
read -r _ <"$connected"
cd "$root"
pivot_root . before
umount --lazy /before
exec tini -- dockerd --mtu 1400 --cgroup-parent /edgemill-systems
