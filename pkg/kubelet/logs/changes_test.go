package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// following are followers of logs that containers write.
type following struct {
	t       *testing.T
	readers *Readers
	ended   atomic.Bool // the containers
	done    sync.WaitGroup
}

// begin follows a log, and returns what the follower has read.
func (f *following) begin(path string) *safeBuffer {
	out := &safeBuffer{}
	f.done.Go(func() {
		if err := f.readers.Read(f.t.Context(), path, Options{Tail: -1, Limit: -1, Follow: true},
			func(context.Context) (bool, error) { return !f.ended.Load(), nil }, out, io.Discard); err != nil {
			f.t.Error("a follower failed:", err)
		}
	})
	return out
}

// end ends the containers and waits until their followers have ended, too.
func (f *following) end() {
	f.ended.Store(true)
	f.done.Wait()
}

// appendLine writes a record to a log.
func appendLine(t *testing.T, path, line string) {
	t.Helper()
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := fmt.Fprintln(log, "2026-01-02T03:04:08Z stdout F "+line); err != nil {
		t.Fatal(err)
	}
}

// instances returns how many inotify instances this process has.
func instances(t *testing.T) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, _ := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); strings.Contains(to, "inotify") {
			n++
		}
	}
	return n
}

// TestFollowersShareAnInstance: any number of followers of any number of logs take one inotify instance, and none takes
// any after the last has ended. It counts those of the process, so it is not parallel to tests with others.
func TestFollowersShareAnInstance(t *testing.T) {
	before := instances(t)
	dir := t.TempDir()
	readers := NewReaders()
	for range 2 { // the instance can be made again
		f := &following{t: t, readers: readers}
		var logs []string
		var outs []*safeBuffer
		for i := range 5 {
			path := filepath.Join(dir, fmt.Sprint(i), "0.log")
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			logs = append(logs, path)
			for range 20 {
				outs = append(outs, f.begin(path))
			}
		}
		text := ""
		for _, line := range []string{"one", "two"} {
			text += line + "\n"
			for _, path := range logs {
				appendLine(t, path, line)
			}
			await(t, "all followers see the line", func() bool {
				return !slices.ContainsFunc(outs, func(out *safeBuffer) bool { return out.String() != text })
			})
		}
		if n := instances(t) - before; n != 1 {
			t.Errorf("%d inotify instances for %d followers", n, len(outs))
		}
		f.end()
		if n := instances(t) - before; n != 0 || len(readers.changes.followers) != 0 {
			t.Errorf("%d inotify instances and %d directories without followers", n, len(readers.changes.followers))
		}
	}
}

// TestFollowWithoutWatch: where the kernel has no instance or watch left, a follower reads all the same, also a file
// that takes the place of the log.
func TestFollowWithoutWatch(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() (*fsnotify.Watcher, error){
		"no instance": func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE },
		"no watch": func() (*fsnotify.Watcher, error) {
			w, err := fsnotify.NewWatcher()
			if err != nil {
				return nil, err
			}
			return w, w.Close() // then Add fails
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "0.log")
			appendLine(t, path, "one")
			f := &following{t: t, readers: &Readers{changes{open: open}}}
			first, second := f.begin(path), f.begin(path)
			both := func(text string) {
				t.Helper()
				await(t, text, func() bool { return first.String() == text && second.String() == text })
			}
			both("one\n")
			appendLine(t, path, "two")
			both("one\ntwo\n")
			if err := os.Rename(path, path+".old"); err != nil {
				t.Fatal(err)
			}
			appendLine(t, path, "three")
			both("one\ntwo\nthree\n")
			f.end()
			if w := f.readers.changes.watcher; w != nil {
				t.Error("a watcher is left")
			}
		})
	}
}

// TestLostChanges: what the kernel has dropped may have been a change of any log, so all followers look.
func TestLostChanges(t *testing.T) {
	t.Parallel()
	var c changes
	w := &fsnotify.Watcher{Events: make(chan fsnotify.Event), Errors: make(chan error)}
	a, b := &follower{"/a/0.log", make(chan struct{}, 1)}, &follower{"/b/0.log", make(chan struct{}, 1)}
	c.enter(a)
	c.enter(b)
	ended := make(chan struct{})
	go func() { defer close(ended); c.tell(w) }()
	told := func() (all string) {
		for _, f := range []*follower{a, b} {
			select {
			case <-f.changed:
				all += f.path
			default:
			}
		}
		return all
	}
	for _, step := range []struct {
		e    fsnotify.Event
		lost error
		want string
	}{
		{e: fsnotify.Event{Name: "/a/0.log", Op: fsnotify.Write}, want: "/a/0.log"},
		{e: fsnotify.Event{Name: "/a/1.log", Op: fsnotify.Write}, want: ""},
		{e: fsnotify.Event{Name: "/b/1.log", Op: fsnotify.Create}, want: "/b/0.log"},
		{e: fsnotify.Event{Name: "/b/0.log", Op: fsnotify.Rename}, want: "/b/0.log"},
		{lost: errors.New("overflow"), want: "/a/0.log/b/0.log"},
	} {
		if step.lost != nil {
			w.Errors <- step.lost
		} else {
			w.Events <- step.e
		}
		w.Events <- fsnotify.Event{} // is taken once the one before was passed on
		if got := told(); got != step.want {
			t.Errorf("%v %v: told %q, not %q", step.e, step.lost, got, step.want)
		}
	}
	close(w.Events)
	<-ended
}
