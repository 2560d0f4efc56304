#!/bin/sh
# Builds the server's image from deploy/Containerfile with buildah, and says its digest:
#
#   deploy/image.sh [rgs.tar]           # and writes it as an OCI archive, for `podman load` or `skopeo copy`
#
# BASE names the base image, by digest where it comes from a registry. Without it the base is made here of Debian's
# packages by mmdebstrap, which has to be root for it. The same base, Debian packages, lock and sources give the same
# digest: Debian's packages are those of the day of the build, so a base that was built is worth keeping.
# From Debian: buildah, mmdebstrap.
set -eu
cd "$(dirname "$0")/.."

refuse() { echo "deploy/image.sh: $*" >&2; exit 2; }
need() { command -v "$1" >/dev/null || refuse "$1 is not installed. Install it (Debian: apt-get install $1)$2."; }

archive=${1:-}
need buildah ""
# Commands of the build run in a changed root and nothing more: this needs no runtime of containers.
export BUILDAH_ISOLATION="${BUILDAH_ISOLATION:-chroot}" SOURCE_DATE_EPOCH=1577836800
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ -z "${BASE:-}" ]; then
    need mmdebstrap ", or name a base image with BASE=IMAGE"
    [ "$(id -u)" = 0 ] || refuse "only root can make a base of Debian's packages. Run this as root, or name BASE=IMAGE."
    BASE=localhost/rgs-base
    mmdebstrap --quiet --variant=minbase --include=python3 --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright' bookworm "$scratch/base.tar"
    printf 'FROM scratch\nADD base.tar /\nCMD ["/bin/sh"]\n' >"$scratch/Containerfile"
    buildah build --quiet --timestamp "$SOURCE_DATE_EPOCH" --tag "$BASE" \
        --file "$scratch/Containerfile" "$scratch" >/dev/null
fi

# Packages come by their hashes; who serves them is asked over TLS, by the authorities that this machine trusts.
authorities=/etc/ssl/certs/ca-certificates.crt
set -- --timestamp "$SOURCE_DATE_EPOCH" --build-arg "BASE=$BASE" --tag localhost/rgs --file deploy/Containerfile
[ ! -s $authorities ] || set -- "$@" --secret "id=authorities,src=$authorities"
buildah build "$@" . >"$scratch/log" 2>&1 \
    || { tail -n 40 "$scratch/log" >&2; refuse "the build has failed; its last lines are above."; }
buildah push --quiet --digestfile "$scratch/digest" localhost/rgs "oci-archive:${archive:-$scratch/rgs.tar}:rgs"
echo "localhost/rgs $(cat "$scratch/digest")"
