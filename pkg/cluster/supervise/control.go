package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"bonsai/pkg/privatesocket"
)

// Status is what a supervisor or a node's init reports on its control socket.
type Status struct {
	PID       int             `json:"pid"`
	Processes []ProcessStatus `json:"processes"`
}

// Serve answers GET /status on a Unix socket that only root can open, until ctx ends. Unless reload is nil, it also
// answers POST /reload, when reload has returned. It replaces a socket that an earlier life left.
//
// Handlers run on goroutines of their own, several at a time. status and reload take the locks that they need. A
// process that is killed leaves the socket's file behind, and nobody answers there.
func Serve(ctx context.Context, path string, status func() Status, reload func() error) error {
	listener, err := privatesocket.Listen(ctx, path)
	if err != nil {
		return fmt.Errorf("make the control socket: %w", err)
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
	// The bounds are for a caller that hangs: one second for its request, and for the answer as long as a reload may
	// take.
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second, ReadTimeout: time.Second,
		WriteTimeout: reloadPatience, IdleTimeout: 5 * time.Second}
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
	// statusPatience bounds a question for the status, which is answered from memory.
	statusPatience = 2 * time.Second
	// reloadPatience bounds a reload: the nodes that are no longer wanted have StopGrace to end, all at the same time.
	reloadPatience = StopGrace + 10*time.Second
)

// Ask reads the status from a control socket. An error means that no process answers there. The file of a socket may
// outlive its process, so only an answer counts.
func Ask(ctx context.Context, path string) (*Status, error) {
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

// Reload has a supervisor read the cluster's configuration again, and returns when its nodes are those of the
// configuration.
func Reload(ctx context.Context, path string) error {
	_, err := callControl(ctx, path, http.MethodPost, "/reload", reloadPatience)
	return err
}

// callControl sends a request to a control socket and returns the answer. Each call has a transport of its own, which
// would otherwise leave a connection behind.
func callControl(ctx context.Context, path, method, what string, patience time.Duration) ([]byte, error) {
	transport := &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
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

// Epitaph returns a sentence for the user: how a process ended, and the last three lines of its output.
func (p ProcessStatus) Epitaph() string {
	words := "it said nothing"
	if lines := strings.Split(p.LastWords, "\n"); p.LastWords != "" {
		const most = 3
		words = "its last words:\n  " + strings.Join(lines[max(0, len(lines)-most):], "\n  ")
	}
	return fmt.Sprintf("%s ended (%s), %s", p.Name, p.LastExit, words)
}
