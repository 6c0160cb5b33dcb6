#!/bin/bash
# Prints the licences and notices of all modules that are linked into the given Go binaries, once each, in the order of their names.
# Fails for a module that has none.
set -euo pipefail
modules=$(for binary in "$@"; do go version -m "$binary" || exit 1; done | awk '$1 == "dep" {print $2 "@" $3}' | sort -u)
# Outside of a module, so that versions are those of the binaries and not of any go.mod.
cd /
# shellcheck disable=SC2086
go mod download -json $modules | awk -F'"' '/"Path":/ {path = $4} /"Version":/ {version = $4} /"Dir":/ {print path, version, $4}' | sort -u |
  while read -r path version dir; do
    files=$(find "$dir" -maxdepth 1 -type f \( -iname 'licen[sc]e*' -o -iname 'notice*' -o -iname 'copying*' -o -iname 'patents*' \) | LC_ALL=C sort)
    # A module below another one's root has its licence there.
    [ -n "$files" ] || files=$(find "${dir%%/[^/@]*@*}" -maxdepth 1 -iname 'licen[sc]e*' 2>/dev/null | head -1)
    [ -n "$files" ] || { echo "$path $version has no licence in $dir" >&2; exit 1; }
    for file in $files; do
      printf '%s\n%s %s: %s\n\n' "--------------------------------------------------------------------------------" "$path" "$version" "$(basename "$file")"
      cat "$file"
      echo
    done
  done
