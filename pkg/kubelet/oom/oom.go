// Package oom finds, in the kernel's log, the processes that the kernel killed because the machine had no memory left.
//
// Kills within a cgroup that reached its own limit are not among them: the runtime reports those of containers, as the
// reason OOMKilled.
package oom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Log is the file of the kernel's log.
const Log = "/dev/kmsg"

// Victim is a process that the kernel killed. Process is its name.
type Victim struct {
	Process string
	PID     int
}

// Watch calls killed for each victim from now on, until ctx ends. path is Log, except in tests.
//
// Each read returns one record (https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg). A reader that is too
// slow misses some and goes on: the kernel then answers EPIPE.
func Watch(ctx context.Context, path string, killed func(Victim)) error {
	// With O_NONBLOCK, Go waits for records by epoll, and Close ends a read that waits.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("open the kernel's log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return fmt.Errorf("find the end of the kernel's log: %w", err)
	}
	// Not before: a file that is closed cannot be sought.
	defer context.AfterFunc(ctx, func() { f.Close() })()
	const longest = 8 << 10 // a record's; the kernel refuses a shorter buffer than the record
	record := make([]byte, longest)
	var p parser
	for {
		n, err := f.Read(record)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.EPIPE):
			continue
		case err != nil:
			return fmt.Errorf("read the kernel's log: %w", err)
		}
		if v, is := p.next(string(record[:n])); is {
			killed(v)
		}
	}
}

// parser keeps between records what the kernel says first: whether the machine had no memory, or a cgroup.
type parser struct{ system bool }

// killedProcess matches the record that names the victim, "Out of memory: Killed process 12 (sh) total-vm:…".
var killedProcess = regexp.MustCompile(`Killed process (\d+) \((.*)\)(?: total-vm:|, UID )`)

// next takes a record: "level,sequence,time,flags;text". The text of a kill's second record is
// "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),…,global_oom,task_memcg=/a,task=sh,pid=12,uid=0", that of a
// cgroup's has oom_memcg= instead of global_oom. The last record names the victim.
func (p *parser) next(record string) (Victim, bool) {
	about, text, found := strings.Cut(record, ";")
	level, _, _ := strings.Cut(about, ",")
	// Higher ones are of processes that write to the log.
	const kernels = 8
	if n, err := strconv.Atoi(level); err != nil || n >= kernels || !found {
		return Victim{}, false
	}
	text, _, _ = strings.Cut(text, "\n") // what follows are the record's properties
	if strings.HasPrefix(text, "oom-kill:") {
		p.system = !strings.Contains(text, ",oom_memcg=")
		return Victim{}, false
	}
	m := killedProcess.FindStringSubmatch(text)
	if m == nil || !p.system || !strings.HasPrefix(text, "Out of memory") {
		return Victim{}, false
	}
	p.system = false
	pid, err := strconv.Atoi(m[1])
	return Victim{Process: m[2], PID: pid}, err == nil
}
