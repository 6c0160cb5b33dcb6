package host

import (
	"errors"
	"fmt"
	"os"
)

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
