package userns

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"time"

	"bonsai/pkg/kubelet/runtime"
)

// DefaultLength is how many ids a pod gets unless the configuration says otherwise. All lengths and all firsts are
// multiples of it.
const DefaultLength = 1 << 16

// Ranges are Count ranges of Length ids each, one after the other from First on.
type Ranges struct {
	First, Length uint32
	Count         int
}

func (r Ranges) at(i int) runtime.IDRange {
	return runtime.IDRange{First: r.First + uint32(i)*r.Length, Length: r.Length}
}

func (r Ranges) check() error {
	switch {
	case r.Length == 0 || r.Length%DefaultLength != 0:
		return fmt.Errorf("userNamespaces.idsPerPod %d is not a positive multiple of %d", r.Length, DefaultLength)
	case r.First < DefaultLength || r.First%DefaultLength != 0:
		return fmt.Errorf("the first id for pods, %d, is not a positive multiple of %d", r.First, DefaultLength)
	case r.Count < 0 || uint64(r.First)+uint64(r.Count)*uint64(r.Length) > math.MaxUint32:
		return fmt.Errorf("there are not enough ids for %d pods of %d each", r.Count, r.Length)
	}
	return nil
}

// subIDsTimeout bounds the asking for subordinate ids.
const subIDsTimeout = 10 * time.Second

// NodeRanges returns a node's ranges for so many pods. If there is a user kubelet and the program getsubids (of
// shadow-utils), they are that user's subordinate ids; otherwise they begin after the first 65,536 ids, which are
// assumed to be the node's own.
func NodeRanges(ctx context.Context, length int64, pods int) (Ranges, error) {
	if length <= 0 || length > math.MaxUint32 {
		return Ranges{}, fmt.Errorf("userNamespaces.idsPerPod %d is not a positive multiple of %d", length,
			DefaultLength)
	}
	r := Ranges{First: DefaultLength, Length: uint32(length), Count: pods}
	const name = "kubelet"
	if _, err := user.Lookup(name); err != nil {
		return r, r.check()
	}
	program, err := exec.LookPath("getsubids")
	if err != nil {
		return r, r.check()
	}
	ctx, cancel := context.WithTimeout(ctx, subIDsTimeout)
	defer cancel()
	var said [2]string
	for i, args := range [][]string{{name}, {"-g", name}} {
		out, err := exec.CommandContext(ctx, program, args...).Output()
		if err != nil {
			return Ranges{}, fmt.Errorf("ask for the subordinate ids of the user %s: %w", name, err)
		}
		said[i] = string(out)
	}
	return subordinate(said[0], said[1], r)
}

// subordinate parses the output of getsubids for users and for groups, "0: kubelet 65536 7208960" each.
func subordinate(users, groups string, want Ranges) (Ranges, error) {
	first, length, err := subIDs(users)
	if err != nil {
		return Ranges{}, fmt.Errorf("subordinate user ids of the user kubelet: %w", err)
	}
	if f, l, err := subIDs(groups); err != nil || f != first || l != length {
		return Ranges{}, errors.Join(
			errors.New("the user kubelet must have the same subordinate group ids as user ids"), err)
	}
	if need := uint64(want.Count) * uint64(want.Length); uint64(length) < need {
		return Ranges{}, fmt.Errorf("the user kubelet has %d subordinate ids, %d pods need %d", length, want.Count,
			need)
	}
	want.First, want.Count = first, int(length/want.Length)
	return want, want.check()
}

func subIDs(said string) (first, length uint32, err error) {
	said = strings.TrimSpace(said)
	fields := strings.Fields(said)
	if strings.Contains(said, "\n") || len(fields) != 4 {
		return 0, 0, fmt.Errorf("there must be one range, not %q", said)
	}
	a, errA := strconv.ParseUint(fields[2], 10, 32)
	b, errB := strconv.ParseUint(fields[3], 10, 32)
	return uint32(a), uint32(b), errors.Join(errA, errB)
}
