package discovery

import (
	"crypto/sha256"
	"encoding/base64"
)

// storageHash is an opaque mark that changes when the stored version of a kind does: the first 8 bytes of a SHA-256.
func storageHash(group, version, kind string) string {
	sum := sha256.Sum256([]byte(group + "/" + version + "/" + kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
