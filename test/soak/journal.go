package main

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// journal keeps what happened, so that a finding can be told with its story, and the findings.
type journal struct {
	out io.Writer

	mu       sync.Mutex
	began    time.Time
	pods     map[string]*podStory // by UID
	kills    []kill
	findings map[string]string // what is wrong → its story; each told once
	asked    int               // answers of witnesses
	looked   int               // searches of the nodes
	excused  map[string]bool   // pods, by UID, with an end that a kill explains
}

// podStory is the life of a short pod. The zero time is what has not happened.
type podStory struct {
	name, kind, node              string
	created, ran, deleted, vanish time.Time
}

// kill is one SIGKILL.
type kill struct {
	victim string
	at     time.Time
}

func newJournal(out io.Writer) *journal {
	return &journal{out: out, began: time.Now(), pods: map[string]*podStory{}, findings: map[string]string{},
		excused: map[string]bool{}}
}

// pod changes the story of a pod.
func (j *journal) pod(uid string, change func(*podStory)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pods[uid] == nil {
		j.pods[uid] = &podStory{}
	}
	change(j.pods[uid])
}

func (j *journal) killed(victim string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.kills = append(j.kills, kill{victim, time.Now()})
	fmt.Fprintf(j.out, "%s kill -9 %s\n", j.clock(time.Now()), victim)
}

func (j *journal) answered() { j.mu.Lock(); defer j.mu.Unlock(); j.asked++ }
func (j *journal) searched() { j.mu.Lock(); defer j.mu.Unlock(); j.looked++ }

// killedSince reports whether a victim was killed since a moment, which the API tells in whole seconds.
func (j *journal) killedSince(victim string, since time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.kills, func(k kill) bool { return k.victim == victim && !k.at.Before(since) })
}

// explained records that a kill explains how a container of a pod ended.
func (j *journal) explained(uid, name, state string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.excused[uid] {
		j.excused[uid] = true
		fmt.Fprintf(j.out, "%s explained by a kill: %s: %s\n", j.clock(time.Now()), name, state)
	}
}

// found records that something is wrong, with the story of the pod with that UID if there is one.
func (j *journal) found(uid, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	if _, known := j.findings[what]; known {
		return
	}
	story := ""
	if p := j.pods[uid]; p != nil {
		story = "\n         " + j.tell(p)
	}
	j.findings[what] = story
	fmt.Fprintf(j.out, "%s FOUND %s%s\n", j.clock(time.Now()), what, story)
}

// tell is a pod's life in a line, with what was killed during it.
func (j *journal) tell(p *podStory) string {
	var b strings.Builder
	fmt.Fprintf(&b, "pod %s (%s) on %s: created %s, ran %s, deleted %s, gone %s", p.name, p.kind, p.node,
		j.clock(p.created), j.clock(p.ran), j.clock(p.deleted), j.clock(p.vanish))
	for _, k := range j.kills {
		if k.at.After(p.created.Add(-5*time.Second)) &&
			(p.vanish.IsZero() || k.at.Before(p.vanish.Add(5*time.Second))) {
			fmt.Fprintf(&b, "; killed %s %s", k.victim, j.clock(k.at))
		}
	}
	return b.String()
}

// clock is a moment as minutes and seconds since the start.
func (j *journal) clock(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := t.Sub(j.began).Round(time.Second)
	return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// verdict prints the figures and returns an error if anything was found.
func (j *journal) verdict() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	ran, gone := 0, 0
	for _, p := range j.pods {
		if !p.ran.IsZero() {
			ran++
		}
		if !p.vanish.IsZero() {
			gone++
		}
	}
	fmt.Fprintf(j.out, "%d short pods created, %d ran, %d gone; %d kills; %d answers of long-lived pods; %d searches of the nodes; %d pods with an end that a kill explains\n",
		len(j.pods), ran, gone, len(j.kills), j.asked, j.looked, len(j.excused))
	if len(j.findings) == 0 {
		fmt.Fprintln(j.out, "nothing was lost and nothing is left")
		return nil
	}
	lines := make([]string, 0, len(j.findings))
	for what, story := range j.findings {
		lines = append(lines, what+story)
	}
	sort.Strings(lines)
	return fmt.Errorf("%d findings:\n  %s", len(lines), strings.Join(lines, "\n  "))
}
