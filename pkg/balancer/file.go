package balancer

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// ReadFile returns the servers in a file: one host:port on each line, at least one.
func ReadFile(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	servers := strings.Fields(string(text))
	if len(servers) == 0 {
		return nil, errors.New("names no server")
	}
	for _, server := range servers {
		if _, _, err := net.SplitHostPort(server); err != nil {
			return nil, err
		}
	}
	return servers, nil
}

// FollowFile sends the servers in a file each time they are others than before, until ctx ends. A file that cannot be
// read changes nothing. It must be replaced as a whole (a rename): a half of it would be taken for all.
func FollowFile(ctx context.Context, path string, before []string, changes chan<- []string, log *slog.Logger) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	failed := "" // the last error, which is said once
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now, err := ReadFile(path)
		if err != nil {
			if err.Error() != failed {
				log.Warn("cannot read the backends, and those that there are stay", "file", path, "err", err)
			}
			failed = err.Error()
			continue
		}
		failed = ""
		if slices.Equal(now, before) {
			continue
		}
		select {
		case changes <- now:
			before = now
		case <-ctx.Done():
			return
		}
	}
}
