#!/bin/bash
# build.sh ARCH DIRECTORY: makes the directory of the programs that a node and the supervisor execute, for a machine
# that has none of them: no C library, no package manager, no bash. See docs/decisions/bundled-programs.md.
#
#   containerd, containerd-shim-runc-v2, ctr, cni/*  static, of the modules that deploy/tools/{containerd,cni} pin
#   runc                                             static, of the module that deploy/tools/runc pins, with this Debian's libseccomp.a
#   ip, nft, iptables, mount, …                      Debian's own binaries in debian/, with their libraries and loader; the program of that
#                                                    name is a script of sh that starts the loader
#   licences/, CONTENTS                              the licence of each package; versions and checksums
#
# An unchanged directory is kept: what Debian has now, the pinned modules and this script are what it depends on.
set -euo pipefail
cd "$(dirname "$0")/../.."
arch=$1
out=$(realpath -m "$2")
export GOOS=linux GOARCH=$arch
flags=(-trimpath -buildvcs=false)

# Debian's release for programs. It need not be this machine's: they bring their C library along.
suite=trixie
# program file: the program, and where its package has it.
programs=(
  "ip usr/bin/ip"
  "nft usr/sbin/nft"
  "iptables usr/sbin/xtables-nft-multi"
  "iptables-save usr/sbin/xtables-nft-multi"
  "iptables-restore usr/sbin/xtables-nft-multi"
  "ip6tables usr/sbin/xtables-nft-multi"
  "ip6tables-save usr/sbin/xtables-nft-multi"
  "ip6tables-restore usr/sbin/xtables-nft-multi"
  "iptables-legacy usr/sbin/xtables-legacy-multi"
  "ip6tables-legacy usr/sbin/xtables-legacy-multi"
  "mount usr/bin/mount"
  "umount usr/bin/umount"
  "nsenter usr/bin/nsenter"
  "modprobe usr/bin/kmod"
  "cp usr/bin/cp"
)
# Libraries that no table names: modprobe loads them itself, for compressed modules.
loaded=(liblzma.so.5 libzstd.so.1)
packages=(iproute2 nftables iptables mount util-linux kmod coreutils liblzma5 libzstd1)

triplet=$(deploy/toolchain.sh "$arch")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# useApt NAME SOURCE...: sets apt to an apt of this architecture that sees no package as installed.
useApt() {
  local dir=$work/$1
  mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
  printf '%s\n' "${@:2}" | sed 's|^|deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] |' >"$dir/sources.list"
  apt=(apt-get -qq -y --no-install-recommends -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir/cache" -o Dir::State::status=/dev/null -o APT::Sandbox::User=root
    -o Debug::NoLocking=1 -o APT::Architecture="$arch" -o "APT::Architectures::=$arch")
  "${apt[@]}" update
}

sites=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages')
mirror=$(grep -m1 '/debian/*$' <<<"$sites")
security=$(grep -m1 'debian-security/*$' <<<"$sites" || echo "${mirror%/}-security")
useApt programs "$mirror $suite main" "$security $suite-security main"
"${apt[@]}" install --print-uris "${packages[@]}" >"$work/uris"

key=$({ cat "$work/uris" deploy/runtime/build.sh deploy/tools/{containerd,cni,runc}/go.*; go version; } | sha256sum)
[ "$(cat "$out.key" 2>/dev/null)" != "$key" ] || exit 0
rm -rf "$out"
mkdir -p "$out"/{cni,debian/lib,debian/xtables,licences}

# Debian's programs: each with the libraries that it needs, by the tables of its file and of theirs.
"${apt[@]}" install --download-only "${packages[@]}" >/dev/null
mkdir "$work/root"
for deb in "$work"/programs/cache/archives/*.deb; do
  dpkg-deb -x "$deb" "$work/root"
  dpkg-deb -c "$deb" | awk -v package="$(dpkg-deb -f "$deb" Package)" '{sub("^\\./", "", $6); print $6, package}' >>"$work/owners"
  dpkg-deb -W --showformat '${Package} ${Version}\n' "$deb" >>"$work/versions"
done
declare -A took=()
take() { # FILE DESTINATION: copies a file of the packages, and the libraries that it needs, and remembers whose it is
  local file=$1 name
  took[$(awk -v file="$file" '$1 == file {print $2; exit}' "$work/owners")]=1
  cp -L "$work/root/$file" "$2"
  while read -r name; do takeLibrary "$name"; done < <(readelf -d "$work/root/$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
}
takeLibrary() { # NAME
  [ ! -e "$out/debian/lib/$1" ] || return 0
  local file
  file=$(cd "$work/root" && realpath -m --relative-to=. "usr/lib/$triplet/$1")
  [ -e "$work/root/$file" ] || { echo "none of the packages has $1" >&2; exit 1; }
  take "$file" "$out/debian/lib/$1"
}
for row in "${programs[@]}"; do
  read -r program file <<<"$row"
  [ -e "$out/debian/${file##*/}" ] || take "$file" "$out/debian/"
  variables=
  case $program in *tables* | nft) variables='XTABLES_LIBDIR="$dir/xtables" ' ;; esac
  # %s keeps what the shell is to read as it is.
  printf '#!/bin/sh\n# Debian'"'"'s %s with the libraries and the loader beside it.\ndir=${0%%/*}/debian\n%sexec "$dir/loader" --inhibit-cache --argv0 %s --library-path "$dir/lib" "$dir/%s" "$@"\n' \
    "$program" "$variables" "$program" "${file##*/}" >"$out/$program"
  chmod +x "$out/$program"
done
for file in "$work/root/usr/lib/$triplet"/xtables/*.so; do take "usr/lib/$triplet/xtables/${file##*/}" "$out/debian/xtables/"; done
for library in "${loaded[@]}"; do takeLibrary "$library"; done
loader=$(readelf -l "$out/debian/ip" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
mv "$out/debian/lib/$(basename "$loader")" "$out/debian/loader"
ln -s ../loader "$out/debian/lib/$(basename "$loader")"
for package in $(printf '%s\n' "${!took[@]}" | sort); do
  cp -L "$work/root/usr/share/doc/$package/copyright" "$out/licences/debian-$package"
done

# Go's programs.
build() { # TOOL PACKAGE...
  (cd "deploy/tools/$1" && CGO_ENABLED=0 go build "${flags[@]}" -ldflags "-s -w -buildid= ${ldflags:-}" -o "$destination/" "${@:2}")
}
containerd=$(cd deploy/tools/containerd && go list -m -f '{{.Version}}' github.com/containerd/containerd/v2)
cni=$(cd deploy/tools/cni && go list -m -f '{{.Version}}' github.com/containernetworking/plugins)
runc=$(cd deploy/tools/runc && go list -m -f '{{.Version}}' github.com/opencontainers/runc)
module=github.com/containerd/containerd/v2
destination=$out ldflags="-X $module/version.Version=$containerd" \
  build containerd $module/cmd/containerd $module/cmd/containerd-shim-runc-v2 $module/cmd/ctr
module=github.com/containernetworking/plugins
destination=$out/cni ldflags="-X $module/pkg/utils/buildversion.BuildVersion=$cni" \
  build cni $module/plugins/main/{bridge,loopback} $module/plugins/meta/portmap $module/plugins/ipam/host-local

# runc starts with C and filters system calls with libseccomp. The library is the one of this machine's release, since
# what links it has this release's C library. Its directory stays at one place and is named by flags, which Go's build
# cache knows, not by pkg-config, whose answers it takes to be always the same. shellcheck source=/dev/null
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
useApt seccomp "$mirror $codename main" "$security $codename-security main"
rm -rf "$out.seccomp"
mkdir "$out.seccomp"
(cd "$work" && "${apt[@]}" download libseccomp-dev && dpkg-deb -x libseccomp-dev_*.deb "$out.seccomp")
cp "$out.seccomp/usr/share/doc/libseccomp-dev/copyright" "$out/licences/debian-libseccomp-dev"
printf '#!/bin/sh\ncase "$*" in *--libs*) echo -lseccomp ;; esac\n' >"$out.seccomp/pkg-config"
chmod +x "$out.seccomp/pkg-config"
(cd deploy/tools/runc && CGO_ENABLED=1 CC=$triplet-gcc PKG_CONFIG=$out.seccomp/pkg-config CGO_CFLAGS="-O2 -I$out.seccomp/usr/include" \
  CGO_LDFLAGS="-L$out.seccomp/usr/lib/$triplet" go build "${flags[@]}" -tags seccomp,netgo,osusergo \
  -ldflags "-s -w -buildid= -linkmode external -extldflags -static -X main.gitCommit=$runc" -o "$out/runc" github.com/opencontainers/runc)

for file in "$out"/debian/loader "$out"/{containerd,containerd-shim-runc-v2,ctr,runc} "$out"/cni/*; do
  ! readelf -l "$file" | grep 'interpreter:' >/dev/null || { echo "$file is not static" >&2; exit 1; }
done
{
  echo "The programs that a node of Bonsai executes, for $arch."
  echo "containerd $containerd"
  echo "runc $runc"
  echo "cni-plugins $cni"
  dpkg-deb -W --showformat '${Package} ${Version} (Debian, linked into runc)\n' "$work"/libseccomp-dev_*.deb
  while read -r package version; do [ -z "${took[$package]:-}" ] || echo "$package $version (Debian $suite)"; done <"$work/versions" | sort
  echo
  (cd "$out" && find . -type f ! -name CONTENTS -print0 | sort -z | xargs -0 sha256sum)
} >"$work/CONTENTS"
mv "$work/CONTENTS" "$out/"
echo "$key" >"$out.key"
