package encryption

import (
	"bytes"
	"regexp"
)

// HolderOf returns what a value in etcd is encrypted by, as its beginning says: k8s:enc:aesgcm:v1:key1:.
func HolderOf(value []byte) Holder {
	rest, encrypted := bytes.CutPrefix(value, []byte("k8s:enc:"))
	parts := bytes.SplitN(rest, []byte(":"), 4) // provider, version, key, and what is encrypted
	if !encrypted || len(parts) < 4 {
		return Holder{}
	}
	return Holder{Provider: string(parts[0]), Key: string(parts[2])}
}

// lastConfig matches the metric of an API server with the hash of the file that it has loaded.
var lastConfig = regexp.MustCompile(
	`(?m)^apiserver_encryption_config_controller_last_config_info\{(?:[^}]*,)?hash="(?:sha256:)?([0-9a-f]{64})"[^}]*\} 1$`)

// Loaded returns the hash of the file that an API server has loaded, as its metrics say; "" if it has none.
func Loaded(metrics []byte) string {
	if found := lastConfig.FindSubmatch(metrics); found != nil {
		return string(found[1])
	}
	return ""
}
