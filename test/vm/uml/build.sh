#!/bin/bash
# Makes the kernel of a user-mode machine, DIR/uml/linux (DIR: -dir, by default /var/tmp/bonsai-vm), from the newest
# linux-source package that Debian's trixie-backports has, with the configuration beside this script. The kernel is a
# program: it boots a root file system in a network namespace of its own, without KVM and without emulation:
#
#   ip netns add vm
#   ip -n vm link add host type veth peer name guest
#   ip -n vm addr add 10.0.2.2/24 dev host && ip -n vm link set host up && ip -n vm link set guest up
#   nsenter --net=/run/netns/vm DIR/uml/linux seccomp=on ncpus=1 mem=3G umid=vm uml_dir=RUN ubd0=disk.raw \
#     root=/dev/ubda rw con0=null,fd:1 con=null ssl=null vec0:transport=raw,ifname=guest,depth=128,gro=1
#
# The transport is raw, not tap: with SMP the driver of 7.3 uses a lock of a queue that tap does not have, and panics.
# One processor is faster than two: the threads of a process share one of the host's.
# What is there already is used again. Needs gcc, make, flex, bison, bc, libelf-dev, xz-utils and half a gigabyte; it
# takes about 13 minutes of a processor.
set -euo pipefail
dir=/var/tmp/bonsai-vm
[ "${1-}" != -dir ] || { dir=${2:?-dir needs a directory}; shift 2; }
[ $# = 0 ] || { echo "usage: $0 [-dir DIRECTORY]" >&2; exit 2; }
config=$(realpath "$(dirname "$0")")/config
out=$dir/uml
mkdir -p "$out/apt/lists/partial" "$out/apt/cache/archives/partial" "$out/build"
cd "$out"

for program in gcc make flex bison bc xz; do
  command -v $program >/dev/null || { echo "$program is missing (apt-get install gcc make flex bison bc libelf-dev xz-utils)" >&2; exit 1; }
done

# An apt of its own: the machine's sources stay as they are. The mirror is the machine's.
mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' | sed -n 's/^Debian Debian //p' | head -1)
[ -n "$mirror" ] || { echo "apt has no packages of Debian (apt-get update)" >&2; exit 1; }
touch apt/status
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie-backports main" >apt/sources.list
cat >apt/conf <<END
Dir::State::Lists "$out/apt/lists";
Dir::State::status "$out/apt/status";
Dir::Cache "$out/apt/cache";
Dir::Etc::SourceList "$out/apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
APT::Sandbox::User "root";
END
if ! ls linux-source-*.deb >/dev/null 2>&1; then
  APT_CONFIG=apt/conf apt-get update -qq
  package=$(APT_CONFIG=apt/conf apt-cache depends linux-source | sed -n 's/.*Depends: //p' | head -1)
  APT_CONFIG=apt/conf apt-get download -qq "${package:?trixie-backports has no linux-source}"
fi
if ! [ -d source ]; then
  rm -rf unpacked source.new
  dpkg-deb -x linux-source-*.deb unpacked
  mkdir source.new
  tar -C source.new --strip-components=1 -xf unpacked/usr/src/linux-source-*.tar.xz
  rm -rf unpacked
  mv source.new source
fi

cd source
make -s ARCH=um O="$out/build" x86_64_defconfig
./scripts/kconfig/merge_config.sh -m -O "$out/build" "$out/build/.config" "$config" >/dev/null
make -s ARCH=um O="$out/build" olddefconfig
# An option that a newer kernel renamed or refuses would be missed only by the test that needs it.
lost=$(grep -E '^CONFIG_' "$config" | grep -vxFf "$out/build/.config" || true)
[ -z "$lost" ] || { echo "the kernel did not take: $lost" >&2; exit 1; }
nice -n 19 make -s -j2 ARCH=um O="$out/build" linux
strip -o "$out/linux.new" "$out/build/linux"
mv "$out/linux.new" "$out/linux"
"$out/linux" --version
