#!/bin/sh
# running.sh DIRECTORY: prints the clusters whose programs are in the directory and run, one a line, and fails if there
# are any. It looks at processes, not at data directories: these may be anywhere.
set -eu
lib=$(cd "$1" && pwd -P)
found=0
for process in /proc/[0-9]*; do
  exe=$(readlink "$process/exe" 2>/dev/null) || continue
  case ${exe% (deleted)} in
    "$lib"/*) ;;
    *) continue ;;
  esac
  # What a cluster's own supervisor keeps running ends with it.
  words=$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) || continue
  case "$words" in
    *" supervise --data-dir "*) data=${words##*--data-dir } && data=${data% } ;;
    *" start "*--foreground*) data= ;;
    *) continue ;;
  esac
  found=1
  if [ -n "$data" ]; then
    echo "a cluster runs: bonsai stop --data-dir $data" >&2
  else
    echo "a cluster runs as a service, process ${process#/proc/}: systemctl stop bonsai@NAME" >&2
  fi
done
[ $found = 0 ]
