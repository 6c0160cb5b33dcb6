package daemon

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// settle gives back what only the start needed: free memory, and the pages of the binary. Half of those that a start
// touches are not touched again by an idle component. The kernel keeps them cached until the memory is needed,
// but counts them as the process's, and as in use, while they are mapped; what is needed again is mapped again at its
// next use.
//
// It does so when the component has connected and read what it follows, and again when what is done late has been done
// once: resyncs, and the runtime's own collections, which come every two minutes. From then on only the binary's pages
// are let go, every minute: what is done every five need not be the process's for the other four. To map them again
// takes a busy component a millisecond or two.
func settle(ctx context.Context) {
	for _, pause := range []time.Duration{15 * time.Second, 135 * time.Second} {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		debug.FreeOSMemory()
		_ = unmapUnused() // without it nothing is wrong
	}
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = unmapUnused()
		case <-ctx.Done():
			return
		}
	}
}

// mapping is a part of the address space that is the same as the file's: [from, to).
type mapping struct{ from, to uintptr }

// unmapUnused lets go of the pages of the process's binary.
func unmapUnused() error {
	binary, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer smaps.Close()
	unchanged, err := unchangedOf(smaps, binary)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range unchanged {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED); errno != 0 {
			errs = append(errs, errno)
		}
	}
	return errors.Join(errs...)
}

// unchangedOf reads from smaps (proc(5)) the mappings of the file at path that can be read from it again: they cannot
// be written, and no page of them is the process's own, as those with a debugger's breakpoints are.
func unchangedOf(smaps io.Reader, path string) ([]mapping, error) {
	var out []mapping
	var at mapping
	var of bool // at is of the file, and cannot be written
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		key, rest, _ := bytes.Cut(lines.Bytes(), []byte(" "))
		switch {
		case !bytes.HasSuffix(key, []byte(":")): // "00401000-01791000 r-xp 00001000 fe:00 4711   /usr/bin/kubelet"
			var mode string
			if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &at.from, &at.to, &mode); err != nil {
				return nil, fmt.Errorf("reading mapping %q: %w", lines.Text(), err)
			}
			of = strings.HasPrefix(mode, "r-") && strings.HasSuffix(lines.Text(), " "+path)
		case of && string(key) == "Anonymous:" && string(bytes.TrimSpace(rest)) == "0 kB":
			out = append(out, at)
		}
	}
	return out, lines.Err()
}
