package logs

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bonsai/pkg/kubelet/filetree"
	"bonsai/pkg/kubelet/runtime"
)

// logFile is the log of a running container.
type logFile struct {
	containerID, path string
}

// Runtime is the container runtime.
type Runtime interface {
	Pods(ctx context.Context) ([]*runtime.PodStatus, error)
	// ReopenContainerLog opens a container's log file again after it was renamed.
	ReopenContainerLog(ctx context.Context, containerID string) error
}

// Rotator keeps log files from growing without end.
type Rotator struct {
	// MaxSize is the size in bytes at which a file is rotated (containerLogMaxSize, 10Mi); MaxFiles the most files of
	// a container, the current one included (containerLogMaxFiles, 5; at least 2).
	MaxSize  int64
	MaxFiles int
	// Interval is how often files are looked at, 10 s by default.
	Interval time.Duration
	Runtime  Runtime
	Files    Files
	Now      func() time.Time
	Log      *slog.Logger
}

const (
	rotatedFormat = "20060102-150405"
	gzipSuffix    = ".gz"
	tmpSuffix     = ".tmp"
)

// Run rotates until ctx is done.
//
// One goroutine does all of it, one file after the other: compression must not take more than one processor.
func (r *Rotator) Run(ctx context.Context) error {
	if r.MaxFiles < 2 || r.MaxSize <= 0 || r.Runtime == nil || r.Now == nil || r.Log == nil {
		return errors.New("logs: a Rotator needs MaxFiles of at least 2, MaxSize, Runtime, Now and Log")
	}
	interval := r.Interval
	if interval == 0 {
		interval = 10 * time.Second
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		files, err := r.running(ctx)
		if err != nil {
			r.Log.Error("running containers not listed for the rotation of their logs", "err", err)
			continue
		}
		for _, f := range files {
			if err := r.rotate(ctx, f); err != nil && ctx.Err() == nil {
				r.Log.Error("container log not rotated", "container", f.containerID, "path", f.path, "err", err)
			}
		}
	}
}

// running lists the logs of all running containers.
func (r *Rotator) running(ctx context.Context) ([]logFile, error) {
	pods, err := r.Runtime.Pods(ctx)
	if err != nil {
		return nil, err
	}
	var out []logFile
	for _, p := range pods {
		for i := range p.Containers {
			if c := &p.Containers[i]; c.State == runtime.StateRunning {
				out = append(out, logFile{containerID: c.ID.ID, path: r.Files.Path(p, c)})
			}
		}
	}
	return out, nil
}

// rotate rotates one file if it is too large. A missing file is made by the runtime again.
//
// The kubelet rotates, and not the runtime, by the contract of CRI. The rename comes before the reopening: until then
// the runtime writes into the renamed file, and no line is lost. The newest rotated file stays uncompressed, because
// readers that follow may still read it.
func (r *Rotator) rotate(ctx context.Context, f logFile) error {
	info, err := os.Stat(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return r.Runtime.ReopenContainerLog(ctx, f.containerID)
	}
	if err != nil {
		return fmt.Errorf("look at the log: %w", err)
	}
	if info.Size() < r.MaxSize {
		return nil
	}
	old, err := rotatedFiles(f.path)
	if err != nil {
		return err
	}
	// One place is for the current file and one for what it becomes now.
	for len(old) > r.MaxFiles-2 {
		if err := os.Remove(old[0]); err != nil {
			return fmt.Errorf("remove the oldest log: %w", err)
		}
		old = old[1:]
	}
	for _, path := range old {
		if err := compress(path); err != nil {
			return err
		}
	}
	to := f.path + "." + r.Now().UTC().Format(rotatedFormat)
	if err := os.Rename(f.path, to); err != nil {
		return fmt.Errorf("rename the log: %w", err)
	}
	if err := r.Runtime.ReopenContainerLog(ctx, f.containerID); err != nil {
		if rerr := os.Rename(to, f.path); rerr != nil {
			return fmt.Errorf("undo the renaming after %w: %w", err, rerr)
		}
		return fmt.Errorf("have the runtime reopen the log: %w", err)
	}
	return nil
}

// rotatedFiles lists the rotated files of a log, the oldest first, and removes unfinished ones.
func rotatedFiles(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("list the logs: %w", err)
	}
	var out []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(path)+".") {
			continue
		}
		full := filepath.Join(filepath.Dir(path), e.Name())
		if strings.HasSuffix(full, tmpSuffix) {
			if err := os.Remove(full); err != nil {
				return nil, fmt.Errorf("remove an unfinished log: %w", err)
			}
			continue
		}
		out = append(out, full)
	}
	slices.Sort(out)
	return out, nil
}

// compress replaces a file by its gzip, whole or not at all.
func compress(path string) (err error) {
	if strings.HasSuffix(path, gzipSuffix) {
		return nil
	}
	from, err := filetree.OpenFile(path)
	if err != nil {
		return fmt.Errorf("open a rotated log: %w", err)
	}
	defer from.Close()
	tmp := path + tmpSuffix
	to, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("make a compressed log: %w", err)
	}
	defer func() {
		if err != nil {
			os.Remove(tmp)
		}
	}()
	z := gzip.NewWriter(to)
	_, err = io.Copy(z, from)
	for _, c := range []io.Closer{z, to} {
		if cerr := c.Close(); err == nil {
			err = cerr
		}
	}
	if err == nil {
		err = os.Rename(tmp, path+gzipSuffix)
	}
	if err != nil {
		return fmt.Errorf("compress %s: %w", path, err)
	}
	return os.Remove(path)
}
