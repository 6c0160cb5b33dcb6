package rootless

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// LeastIDs is how many subordinate IDs a user needs: those up to 65535, which images use.
const LeastIDs = 65536

// idRange is a block of subordinate IDs.
type idRange struct{ first, count uint64 }

// CountIDs returns how many IDs a file as /etc/subuid (subuid(5)) gives a user.
func CountIDs(file, name string, uid int) uint64 {
	count := uint64(0)
	for _, r := range readRanges(file, name, uid) {
		count += r.count
	}
	return count
}

// readRanges returns the blocks of a user in a file as /etc/subuid. A missing file has none.
func readRanges(file, name string, uid int) []idRange {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return parseRanges(string(data), name, uid)
}

// parseRanges reads lines of a user's name or number, the first ID and the count. Other lines are skipped, as
// newuidmap does.
func parseRanges(text, name string, uid int) []idRange {
	var found []idRange
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 || fields[0] != name && fields[0] != strconv.Itoa(uid) {
			continue
		}
		first, errFirst := strconv.ParseUint(fields[1], 10, 32)
		count, errCount := strconv.ParseUint(fields[2], 10, 32)
		if errFirst == nil && errCount == nil && count > 0 {
			found = append(found, idRange{first, count})
		}
	}
	return found
}

// mapArguments returns the arguments of newuidmap and newgidmap after the pid: 0 is the user's own ID, and from 1 on
// follow the subordinate ones.
func mapArguments(own int, ranges []idRange) []string {
	args := []string{"0", strconv.Itoa(own), "1"}
	next := uint64(1)
	for _, r := range ranges {
		args = append(args, strconv.FormatUint(next, 10), strconv.FormatUint(r.first, 10),
			strconv.FormatUint(r.count, 10))
		next += r.count
	}
	return args
}

// mapIDs gives the user namespace of a process its IDs.
func mapIDs(pid int, u User) error {
	for _, m := range []struct {
		program, file string
		own           int
	}{{"newuidmap", "/etc/subuid", u.UID}, {"newgidmap", "/etc/subgid", u.GID}} {
		args := append([]string{strconv.Itoa(pid)}, mapArguments(m.own, readRanges(m.file, u.Name, u.UID))...)
		if out, err := exec.Command(m.program, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", m.program, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
