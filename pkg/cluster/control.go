package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"bonsai/pkg/cluster/host"
)

// Status is what a supervisor or a node's init says of itself on its control socket.
type Status struct {
	PID       int             `json:"pid"`
	Processes []ProcessStatus `json:"processes"`
}

// longestSocket is how long the path of a unix socket may be (sun_path, without its end).
const longestSocket = 107

// checkSockets tells whether the control sockets can be made below the data directory.
func (c Config) checkSockets() error {
	longest := len(c.layout().socket("supervisor"))
	for _, n := range c.Nodes {
		longest = max(longest, len(c.layout().nodeSocket(n.Name())))
	}
	if longest > longestSocket {
		return fmt.Errorf("--data-dir %s: too long: a socket below it has a path of %d characters, and %d are the most", c.DataDir, longest, longestSocket)
	}
	return nil
}

// serveControl answers GET /status on a unix socket that only root can open, until ctx ends, and, unless reload is nil, POST /reload
// when reload has returned.
func serveControl(ctx context.Context, path string, status func() Status, reload func() error) error {
	if err := host.IgnoreMissing(os.Remove(path)); err != nil {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("listen on the control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return errors.Join(err, listener.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(status()) // a reader that went away is no error of ours
	})
	if reload != nil {
		mux.HandleFunc("POST /reload", func(w http.ResponseWriter, _ *http.Request) {
			if err := reload(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: reloadPatience, IdleTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

const (
	statusPatience = 2 * time.Second
	// reloadPatience is how long a node may take to end that is no more wanted.
	reloadPatience = stopGrace + 10*time.Second
)

// askControl reads the status from a control socket. An error means that nobody is there.
func askControl(ctx context.Context, path string) (*Status, error) {
	answer, err := callControl(ctx, path, http.MethodGet, "/status", statusPatience)
	if err != nil {
		return nil, err
	}
	var s Status
	if err := json.Unmarshal(answer, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// reloadControl has the supervisor read the cluster's configuration again, and returns when its nodes are those of it.
func reloadControl(ctx context.Context, path string) error {
	_, err := callControl(ctx, path, http.MethodPost, "/reload", reloadPatience)
	return err
}

// callControl asks who listens on a control socket.
func callControl(ctx context.Context, path, method, what string, patience time.Duration) ([]byte, error) {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://control"+what, nil)
	if err != nil {
		return nil, err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	const most = 1 << 20 // bytes, many times a status
	answer, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the supervisor: %s", strings.TrimSpace(string(answer)))
	}
	return answer, err
}
