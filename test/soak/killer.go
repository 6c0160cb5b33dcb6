package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// killInTurn kills one victim after the other until working ends, and sees each of them started again.
func killInTurn(working, ctx context.Context, c *clusterUnderTest, j *journal, victims []string, every time.Duration) {
	if len(victims) == 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-working.Done():
			return
		}
		victim := victims[i%len(victims)]
		if err := killOne(ctx, c, j, victim); err != nil && ctx.Err() == nil {
			j.found("", "%s: %v", victim, err)
		}
	}
}

// killOne kills a process of the host ("etcd") or of a node ("n1/kubelet") and waits until its supervisor has started
// it again.
func killOne(ctx context.Context, c *clusterUnderTest, j *journal, victim string) error {
	where, process, onNode := strings.Cut(victim, "/")
	if !onNode {
		where, process = "host", victim
	}
	var pid int
	var err error
	// It may be waiting out the back-off of its last end.
	if !poll(ctx, time.Second, func() bool { pid, err = c.pid(ctx, where, process); return err == nil && pid != 0 }) {
		return fmt.Errorf("does not run: %w", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	j.killed(victim)
	if !poll(ctx, 500*time.Millisecond, func() bool {
		now, err := c.pid(ctx, where, process)
		return err == nil && now != 0 && now != pid
	}) {
		return fmt.Errorf("is not started again within %s", patience)
	}
	return nil
}
