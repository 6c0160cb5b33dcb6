package encryption

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// generationPrefix begins the line of the cluster's file with its generation, a number that rises with each change. It
// is in the file itself, so that no kill or loss of power can separate the two.
const generationPrefix = "# generation: "

var generationLine = regexp.MustCompile(`(?m)^` + generationPrefix + `(\d{1,18})$`)

// generation returns the generation of a file with keys. It is 0 for files of earlier versions, and for one whose line
// is damaged: to refuse everything then would lock out the newest keys.
func generation(text []byte) uint64 {
	if found := generationLine.FindSubmatch(text); found != nil {
		n, _ := strconv.ParseUint(string(found[1]), 10, 64) // so many digits are a number
		return n
	}
	return 0
}

// Take makes a file that another control plane has published this machine's. It refuses one that is not newer: somebody
// may publish again what he has seen before, and with keys of an earlier time this control plane would write by a key
// that was replaced, perhaps because it had leaked, and could not read newer Secrets. Files of earlier versions have no
// order among themselves.
func Take(l plan.Layout, text []byte) error {
	has, err := os.ReadFile(l.Encryption())
	if host.IgnoreMissing(err) != nil {
		return fmt.Errorf("read the keys of the cluster's Secrets: %w", err)
	}
	if err == nil && bytes.Equal(has, text) {
		return nil
	}
	if before, now := generation(has), generation(text); before > 0 && now <= before {
		return fmt.Errorf("the published keys are of generation %d and not newer than those of %s, of generation %d: somebody publishes earlier keys again, or the control plane that rotates has an earlier file (then copy this one there)",
			now, l.Encryption(), before)
	}
	return host.KeepFile(l.Encryption(), text)
}
