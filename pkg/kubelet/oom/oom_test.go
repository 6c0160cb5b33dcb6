package oom

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// machine and container are what Linux 6.12 logs when the machine has no memory left, and when a container has used up
// its limit.
var (
	machine = []string{
		"4,1021,309815071,-;sh invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=1000\n",
		"6,1090,309816100,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=c1,mems_allowed=0,global_oom,task_memcg=/kubepods/besteffort/podu/c1,task=tail (a) b,pid=1234,uid=0\n SUBSYSTEM=x\n",
		"3,1091,309816200,-;Out of memory: Killed process 1234 (tail (a) b) total-vm:2106244kB, anon-rss:1500kB, file-rss:4kB, shmem-rss:0kB, UID:0 pgtables:4kB oom_score_adj:1000\n"}
	container = []string{
		"6,1110,409816100,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c1,mems_allowed=0,oom_memcg=/kubepods/podu/c1,task_memcg=/kubepods/podu/c1,task=sh,pid=99,uid=0\n",
		"3,1111,409816200,-;Memory cgroup out of memory: Killed process 99 (sh) total-vm:27964kB, anon-rss:23680kB, file-rss:1684kB, shmem-rss:0kB, UID:0 pgtables:96kB oom_score_adj:994\n",
		"6,1112,409816300,-;Tasks in /kubepods/podu/c1 are going to be killed due to memory.oom.group set\n",
		"3,1113,409816400,-;Memory cgroup out of memory: Killed process 100 (sh) total-vm:2106244kB\n"}
)

// forged is what a process writes to the log.
var forged = []string{"14,1,2,-;oom-kill:constraint=CONSTRAINT_NONE,global_oom,task=a,pid=7,uid=0\n",
	"11,1,2,-;Out of memory: Killed process 7 (a) total-vm:1kB\n"}

func TestVictims(t *testing.T) {
	t.Parallel()
	var p parser
	var got []Victim
	for _, record := range slices.Concat(container, machine, container, forged, []string{"not a record"}) {
		if v, is := p.next(record); is {
			got = append(got, v)
		}
	}
	if want := []Victim{{"tail (a) b", 1234}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestWatch reads records from a pipe, which cannot be sought, and from the machine's own log until its context ends.
func TestWatch(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "kmsg")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{pipe: unix.ESPIPE, pipe + "-none": os.ErrNotExist} {
		if err := Watch(t.Context(), path, func(Victim) {}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	for range 200 { // the context may end at any moment
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Watch(ctx, Log, func(Victim) {}) }()
		cancel()
		if err := <-done; err != nil && !errors.Is(err, os.ErrPermission) && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}
