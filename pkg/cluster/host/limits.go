package host

import (
	"errors"
	"fmt"
	"os"
)

// RaiseInotifyLimits gives several nodes on one machine enough inotify instances and watches: each containerd,
// kubelet and most controllers in pods have some. It lowers neither.
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
