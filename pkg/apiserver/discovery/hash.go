package discovery

import (
	"crypto/sha256"
	"encoding/base64"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// storageHash is an opaque mark of what a resource's objects are stored as, the same in all its versions: the first 8
// bytes of a SHA-256.
func storageHash(stored schema.GroupVersionKind) string {
	sum := sha256.Sum256([]byte(stored.Group + "/" + stored.Version + "/" + stored.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
