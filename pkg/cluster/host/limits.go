package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Scores for the kernel's out-of-memory killer, upstream's: containers have higher ones, and die first.
const (
	// ControlPlaneOOMScore is that of node-critical pods, and NodeOOMScore that of what runs a node.
	ControlPlaneOOMScore, NodeOOMScore = -997, -999
)

// LowerOOMScore lowers how soon the kernel kills this process, and the processes that it will start, when memory runs
// out. Where the kernel refuses that (CAP_SYS_RESOURCE), the score stays as it is.
func LowerOOMScore(score int) error {
	err := os.WriteFile("/proc/self/oom_score_adj", fmt.Append(nil, score), 0)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// RaiseInotifyLimits raises the limits of inotify instances and watches so that several nodes fit on one machine: each
// containerd, each kubelet and most controllers in pods use some. It never lowers a limit.
func RaiseInotifyLimits() error {
	var errs []error
	for path, least := range map[string]int{"max_user_instances": 1024, "max_user_watches": 524288} {
		path = "/proc/sys/fs/inotify/" + path
		data, err := os.ReadFile(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		var now int
		if _, err := fmt.Sscan(string(data), &now); err == nil && now < least {
			errs = append(errs, os.WriteFile(path, fmt.Append(nil, least), 0))
		}
	}
	return errors.Join(errs...)
}
