package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
)

// markPrefix begins the name of everything that any cluster makes on the host.
const markPrefix = "bonsai-"

// id tells this cluster's things on the host from those of others. It follows from the data directory alone, so that
// what an
// earlier life left is found even when the directory's content is lost. It is never 0.
func (c Config) ID() uint32 {
	sum := sha256.Sum256([]byte(c.DataDir))
	return binary.BigEndian.Uint32(sum[:]) | 1
}

// mark is the name of everything that this cluster makes on the host: link, network namespace, packet rules,
// cgroups. It is as
// long as the name of a link may be. Routes have no name; their metric is the id.
func (c Config) Mark() string { return MarkOf(c.ID()) }

func MarkOf(id uint32) string { return fmt.Sprintf("%s%08x", markPrefix, id) }

// markIn returns the mark of a cluster in text, such as the path of a cgroup, or "".
func MarkIn(text string) string {
	for _, part := range strings.Split(text, "/") {
		if len(part) == len(markPrefix)+8 && strings.HasPrefix(part, markPrefix) {
			return part
		}
	}
	return ""
}
