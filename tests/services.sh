#!/bin/sh
# Installs the real services that the tests use, where that is possible: as root, with apt.
# Says nothing when they are there. Elsewhere the tests that need them are skipped, with the reason.
set -u

have_postgresql() {
    command -v initdb >/dev/null 2>&1 && return 0
    for program in /usr/lib/postgresql/*/bin/initdb; do
        [ -x "$program" ] && return 0
    done
    return 1
}

have_slurm() {
    for program in munged slurmctld slurmd sbatch; do
        PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null 2>&1 || return 1
    done
}

have_accounting() {
    for program in slurmdbd mariadbd mariadb-install-db; do
        PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null 2>&1 || return 1
    done
}

packages=""
have_postgresql || packages="$packages postgresql"
have_slurm || packages="$packages slurm-wlm munge"
# MariaDB's programs without its service; that of slurmdbd does not start without a configuration.
have_accounting || packages="$packages slurmdbd mariadb-server-core mariadb-client-core"
for program in fio zstd chromium; do
    command -v "$program" >/dev/null 2>&1 || packages="$packages $program"
done
command -v cc >/dev/null 2>&1 || packages="$packages gcc libc6-dev"
for program in make g++ gfortran pkg-config; do
    command -v "$program" >/dev/null 2>&1 || packages="$packages $program"
done
[ -e /usr/share/i18n/locales/de_DE ] || packages="$packages locales"
{ command -v mpirun && command -v mpicc; } >/dev/null 2>&1 || packages="$packages openmpi-bin libopenmpi-dev"
command -v pw.x >/dev/null 2>&1 || packages="$packages quantum-espresso quantum-espresso-data"
command -v h5dump >/dev/null 2>&1 || packages="$packages hdf5-tools"
have_hdf5() { pkg-config --exists "hdf5-$1" 2>/dev/null; }
have_hdf5 serial || packages="$packages pkg-config libhdf5-dev"
have_hdf5 openmpi || packages="$packages pkg-config libhdf5-openmpi-dev"
for program in strace valgrind sqlite3 lua5.1; do
    command -v "$program" >/dev/null 2>&1 || packages="$packages $program"
done
command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ] || packages="$packages nginx-light"
command -v mkfs.ext4 >/dev/null 2>&1 || [ -x /sbin/mkfs.ext4 ] || packages="$packages e2fsprogs"

[ -n "$packages" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "services: not installed, for want of root or apt:$packages; their tests will be skipped" >&2
    exit 0
fi

echo "services: installing$packages" >&2
log=$(mktemp) || exit 0
# The tests start servers of their own; a package that starts one more at installation would only be in the way.
quiet=/etc/postgresql-common/createcluster.d/luthier-tests.conf
mkdir -p "${quiet%/*}" && echo "create_main_cluster = false" >"$quiet"
no_start=/usr/sbin/policy-rc.d # says whether a package may start its service
if [ -e "$no_start" ]; then no_start=""; else printf '#!/bin/sh\nexit 101\n' >"$no_start" && chmod +x "$no_start"; fi
install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 \
        "$@" >>"$log" 2>&1 </dev/null
}
# shellcheck disable=SC2086 # a list of words
install $packages || { apt-get update -qq >>"$log" 2>&1; install $packages; } || for package in $packages; do
    install "$package" || {
        tail -n 3 "$log" >&2
        echo "services: apt could not install $package; its tests will be skipped" >&2
    }
done
rm -f "$quiet" "$log" ${no_start:+"$no_start"}
rmdir "${quiet%/*}" 2>/dev/null
exit 0
