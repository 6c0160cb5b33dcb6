package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
)

// markPrefix begins the name of everything that any cluster makes on the host.
const markPrefix = "bonsai-"

// ID identifies this cluster's things on the host. It follows from the data directory alone, so a command finds what an
// earlier life left even when the directory's content is lost. It is also the metric of the cluster's routes, and so
// never 0: routes of others without a metric would pass for the cluster's.
func (c Config) ID() uint32 {
	sum := sha256.Sum256([]byte(c.DataDir))
	return binary.BigEndian.Uint32(sum[:]) | 1
}

// Mark is the name of everything that this cluster makes on the host: link, network namespace, packet rules, cgroups.
// It is as long as the name of a link may be. Routes have no name; their metric is the ID.
func (c Config) Mark() string { return MarkOf(c.ID()) }

// MarkOf returns the mark of the cluster with an ID.
func MarkOf(id uint32) string { return fmt.Sprintf("%s%08x", markPrefix, id) }

// MarkIn returns the mark of a cluster that is a part of a path, such as that of a cgroup, or "".
func MarkIn(text string) string {
	for _, part := range strings.Split(text, "/") {
		if len(part) == len(markPrefix)+8 && strings.HasPrefix(part, markPrefix) {
			return part
		}
	}
	return ""
}
