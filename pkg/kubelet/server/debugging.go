package server

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"

	"golang.org/x/sys/unix"
)

// debugging adds the paths that show the inside of pods or of the kubelet, run something there, or show the node's
// logs. If they are disabled, each answers that it is.
func (s *Server) debugging(mux *http.ServeMux) error {
	if s.cfg.NoDebugging {
		for _, path := range []string{"/run/", "/exec/", "/attach/", "/portForward/", "/containerLogs/",
			"/runningpods/", "/logs/", "/debug/pprof/"} {
			mux.HandleFunc(path, refused("Debug endpoints are disabled."))
		}
		return nil
	}
	mux.HandleFunc("GET /runningpods/", s.runningPods)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", streamed(s.containerLogs))
	for _, id := range []string{"", "/{uid}"} {
		mux.HandleFunc("/exec/{namespace}/{pod}"+id+"/{container}", streamed(s.exec))
		mux.HandleFunc("/attach/{namespace}/{pod}"+id+"/{container}", streamed(s.attach))
		mux.HandleFunc("POST /run/{namespace}/{pod}"+id+"/{container}", streamed(s.run))
		mux.HandleFunc("/portForward/{namespace}/{pod}"+id, streamed(s.portForward))
	}
	for path, h := range s.cfg.Profiles {
		mux.Handle(path, h)
	}
	if len(s.cfg.Profiles) == 0 {
		mux.HandleFunc("/debug/pprof/", refused("profiling endpoint is disabled."))
	}
	if s.cfg.LogDir == "" {
		mux.HandleFunc("/logs/", refused("logs endpoint is disabled."))
		return nil
	}
	root, err := os.OpenRoot(s.cfg.LogDir) // links out of the directory lead nowhere
	if err != nil {
		return fmt.Errorf("open the directory of logs: %w", err)
	}
	// A log may be long, so it is streamed.
	mux.HandleFunc("GET /logs/", streamed(http.StripPrefix("/logs/", http.FileServerFS(logFiles{root})).ServeHTTP))
	return nil
}

// logFiles has the regular files and directories below a directory, and nothing else that pods with host paths may put
// there: opening a pipe would wait for its writer.
type logFiles struct{ root *os.Root }

// Open implements fs.FS.
func (l logFiles) Open(name string) (fs.File, error) {
	info, err := l.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return l.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // it may be exchanged after the look
}

// refused answers 405 with the reason. The status code is upstream's.
func refused(why string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, why, http.StatusMethodNotAllowed) }
}
