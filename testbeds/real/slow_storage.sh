#!/bin/sh
# Slow storage on one machine: a file system on a loop device whose reads, and writes if limits are given, the blkio
# controller (cgroup v1) throttles for the processes of one group.
#
#     slow_storage.sh SIZE_BYTES READ_IOPS READ_BYTES_S [WRITE_IOPS WRITE_BYTES_S]
#
# Prints one line, "FOLDER GROUP DEVICE", and keeps the storage until its standard input ends, so it is removed
# when its owner ends or is killed. Storage that a killed script left behind is removed first.
set -u
controller=/sys/fs/cgroup/blkio

# The image is unlinked and the loop device freed by the last unmount, so nothing else must be removed.
dismantle() {
    set +e
    group=$controller/luthier-slow.$1
    folder=/var/tmp/luthier-slow.$1
    while read -r process; do # a process that still runs continues without a limit
        echo "$process" >"$controller/cgroup.procs"
    done <"$group/cgroup.procs"
    umount "$folder/data" || umount -l "$folder/data"
    [ -e "$folder/image" ] && losetup -j "$folder/image" -O NAME -n | xargs -r losetup -d
    rm -f "$folder/image"
    rmdir "$folder/data" "$folder" "$group"
} 2>/dev/null

for left in "$controller"/luthier-slow.*; do
    [ -d "$left" ] && ! kill -0 "${left##*.}" 2>/dev/null && dismantle "${left##*.}"
done

trap 'dismantle $$' EXIT
trap 'exit 1' HUP INT TERM
set -e
group=$controller/luthier-slow.$$
folder=/var/tmp/luthier-slow.$$
mkdir "$group"
mkdir -m 700 "$folder"
mkdir "$folder/data"
truncate -s "$1" "$folder/image"
mkfs.ext4 -q -m 0 -O ^has_journal -E lazy_itable_init=0 "$folder/image"
device=$(losetup -f --show "$folder/image")
mount -o noatime "$device" "$folder/data"
losetup -d "$device" # takes effect at the unmount
rm "$folder/image"
number=$(cat "/sys/block/${device#/dev/}/dev")
echo "$number $2" >"$group/blkio.throttle.read_iops_device"
echo "$number $3" >"$group/blkio.throttle.read_bps_device"
if [ $# -eq 5 ]; then # what the kernel writes on its own, later, is not limited: only direct writes and fsync are
    echo "$number $4" >"$group/blkio.throttle.write_iops_device"
    echo "$number $5" >"$group/blkio.throttle.write_bps_device"
fi
echo "$folder/data $group $device"
while read -r _; do :; done
