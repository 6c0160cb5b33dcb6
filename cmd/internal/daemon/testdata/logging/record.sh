#!/bin/bash
# Records what Kubernetes' own kube-apiserver says to logging flags (refused.txt), and some lines of its log (lines.txt,
# lines.json): record.sh KUBE-APISERVER, in this directory. The server ends at once, since flags that it needs are
# missing.
set -euo pipefail
server=$1
# said FLAG...: why the server does not start, without the headers of its log; "accepted" where only flags are missing.
said() {
  "$server" "$@" 2>&1 | python3 -c '
import json, re, sys
said = ""
for line in sys.stdin:
    if m := re.match(r"E\d{4} .*\] \"command failed\" err=(\".*\")$", line):
        said = json.loads(m[1])
    elif line.startswith("{") and json.loads(line).get("msg") == "command failed":
        said = json.loads(line)["err"]
    elif line.startswith("Error: "):
        said = line[7:].strip()
print("accepted" if "--etcd-servers must be specified" in said else said)'
}
alpha=--feature-gates=LoggingAlphaOptions=true
while read -r flags; do
  # shellcheck disable=SC2086 # words
  printf '%s\n%s\n\n' "$flags" "$(said $flags || true)"
done >refused.txt <<FLAGS
--logging-format=xml
--logging-format=
--logging-format=JSON
--logging-format=json
--feature-gates=LoggingBetaOptions=false --logging-format=json
--log-flush-frequency=-1s
--log-flush-frequency=0s
--log-flush-frequency=abc
--log-flush-frequency=5
--log-flush-frequency=1s
--vmodule=a=1 --logging-format=json
--vmodule= --logging-format=json
--vmodule=abc
--vmodule=a=-1
--vmodule==1
--vmodule=a[=1
--vmodule=a=1,b*=2,
--v=-1
--v=abc
--v=99999999999
--v=10
--log-json-split-stream
--log-json-split-stream=false
--log-json-split-stream=maybe
--log-text-split-stream
--log-json-info-buffer-size=1Mi
--log-text-info-buffer-size=1Mi
--log-text-info-buffer-size=0
--log-text-info-buffer-size=abc
--log-json-info-buffer-size=
--log-text-info-buffer-size=-1
$alpha --log-text-info-buffer-size=-1
$alpha --log-json-info-buffer-size=100
$alpha --logging-format=json --log-json-split-stream --log-json-info-buffer-size=1Mi
$alpha --log-text-split-stream --log-text-info-buffer-size=1Mi
--log-flush-frequency=-1s --logging-format=xml --log-json-split-stream --vmodule=a=1
FLAGS
"$server" 2>&1 | grep '^[IWE][0-9]' >lines.txt || true
"$server" --logging-format=json 2>&1 | grep '^{' >lines.json || true
