package machine

import (
	"fmt"

	"bonsai/pkg/cluster/plan"
)

// LongestSocket is how long the path of a unix socket may be (sun_path, without its end). unix(7): sun_path has 108
// bytes.
const LongestSocket = 107

// CheckSockets returns an error if a socket below the data directory would have a path that is too long.
func CheckSockets(c plan.Config) error {
	longest := max(len(c.Layout().Socket("supervisor")), len(c.Layout().SpansSocket()))
	for _, n := range c.Nodes {
		longest = max(longest, len(c.Layout().NodeSocket(n.Name())))
	}
	if longest > LongestSocket {
		return fmt.Errorf("--data-dir %s: too long: a socket below it has a path of %d characters, and %d are the most",
			c.DataDir, longest, LongestSocket)
	}
	return nil
}
