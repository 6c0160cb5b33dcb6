package host

import (
	"os"
	"strings"
)

// InUserNamespace reports whether this process is in a user namespace that is not the machine's first one. There,
// capabilities count for what belongs to the namespace alone.
func InUserNamespace() bool {
	data, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && isPartOfIDs(string(data))
}

// isPartOfIDs reports whether a uid_map (user_namespaces(7)) is another than the one of the first namespace, which has
// all IDs as they are.
func isPartOfIDs(uidMap string) bool {
	return strings.Join(strings.Fields(uidMap), " ") != "0 0 4294967295"
}
