#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs Debian packages in a bare root, runs debian/tests there, purges the packages, and compares the root's files
# with those before. It must run as root. debootstrap makes the root once, from this machine's version of Debian. The
# root has no /proc and no /sys, and frit must run without them. With --container the packages are installed in a
# container of such a root, which buildah makes.
#
# An archive of make dist is unpacked in the root before packages are installed, and its command must run.
#
#     tests/packaging/bare_root.sh [--container] ROOT FILE...      .deb and frit-VERSION-linux-PROCESSOR.tar.gz
set -eu
container=''
if [ "$1" = --container ]; then container=yes; shift; fi
root=$1
log=$root.log
shift
say() { echo "bare_root: $*" >&2; }
enter() { if [ "$container" ]; then buildah run --isolation chroot "$container" -- "$@"; else chroot "$root" "$@"; fi; }
inside() { enter /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }

if [ ! -e "$root/complete" ]; then
    say "making a root by debootstrap"
    rm -rf "$root"
    (. /etc/os-release && debootstrap --variant=minbase "$VERSION_CODENAME" "$root") >"$log" 2>&1 ||
        { tail -n 5 "$log" >&2; say "debootstrap failed"; exit 1; }
    tar -C "$root" -cf "$root.tar" .   # the state before packages are installed
    touch "$root/complete"
fi
if [ "$container" ]; then
    export STORAGE_DRIVER=vfs
    container=$(buildah from scratch)
    trap 'buildah rm "$container" >/dev/null' EXIT
    buildah add --quiet "$container" "$root.tar" / >/dev/null
    root=$(buildah mount "$container")
fi
mkdir -p "$root/packages"
rm -rf "${root:?}/packages/"* "$root/tests"
for file in "$@"; do
    case $file in
    *.deb) cp "$file" "$root/packages/" ;;
    *.tar.gz)
        tar -xzf "$file" -C "$root/packages"
        inside sh -c '/packages/frit-*/bin/frit run -q -n 12 --temp 0 -p "Tell me the tale of Rapunzel." </dev/null' |
            grep -q "There were once a man and a woman" || { say "$file does not run"; exit 1; }
        if [ "$container" ]; then   # the container has no packages, so no libcurl
            inside sh -c '/packages/frit-*/bin/frit pull hf:org/model 2>&1 || :' | grep -q "needs libcurl" ||
                { say "$file does not say that libcurl is missing"; exit 1; }
        fi
        say "$(basename "$file") runs${container:+ in a container}"
        ;;
    esac
done
if [ -z "$(find "$root/packages" -name '*.deb')" ]; then exit 0; fi
cp -R packaging/debian/tests "$root/tests"
cp /etc/resolv.conf "$root/etc/"

# Lists the root's files without those that the system itself changes: logs, caches, and files of the linker and apt.
files() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./run -o -path ./packages \
        -o -path ./tests -o -path ./tmp -o -path ./var/log -o -path ./var/cache -o -path ./var/lib/apt \
        -o -path ./var/lib/dpkg \) -prune -o -print | LC_ALL=C sort)
}

# The packages' dependencies are installed first, because purging the packages does not remove them.
depends=$(for file in "$@"; do case $file in *.deb) dpkg-deb -f "$file" Depends; echo ,; esac; done | tr -d '\n' |
    sed -e 's/\(lib\)\{0,1\}frit[^,]*,//g' -e 's/,[, ]*/, /g' -e 's/, $//')
inside apt-get -q update >"$log" 2>&1
inside apt-get -q -y --no-install-recommends satisfy "$depends, gcc, libc6-dev, pkgconf" >>"$log" 2>&1 ||
    { tail -n 5 "$log" >&2; exit 1; }
files >"$log.before"

say "installing"
inside sh -c 'apt-get -q -y --no-install-recommends install /packages/*.deb' >>"$log" 2>&1 ||
    { tail -n 10 "$log" >&2; exit 1; }
for file in /usr/bin/frit /usr/lib/systemd/system/frit.service /lib/systemd/system/frit.service; do
    if [ -e "$root$file" ]; then echo "$file"; fi
done >"$log.there"
grep -q bin/frit "$log.there" && grep -q frit.service "$log.there" || { say "the command or the unit is not installed"; exit 1; }
[ "$(stat -c %a "$root/etc/frit/environment")" = 600 ] || { say "/etc/frit/environment is not private"; exit 1; }
for test in command library; do
    inside "/tests/$test" || { say "debian/tests/$test failed"; exit 1; }
done

say "purging"
inside sh -c 'dpkg --purge $(for file in /packages/*.deb; do dpkg-deb -f "$file" Package; done)' >>"$log" 2>&1 ||
    { tail -n 10 "$log" >&2; exit 1; }
files >"$log.after"
diff "$log.before" "$log.after" || { say "purging left files, or took some"; exit 1; }
say "installed, used and purged${container:+ in a container}"
