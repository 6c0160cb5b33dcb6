package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// part is one run of ginkgo: the specs that may run beside others, or those that may not.
type part struct {
	name, labels string
	procs        int
}

func (s settings) parts() []part {
	return []part{
		{"parallel", "(" + s.labels + ") && !Serial", s.procs},
		{"serial", "(" + s.labels + ") && Serial", 1},
	}
}

// runSuite runs both parts and returns what became of every spec. Failing specs are no error here.
func (s settings) runSuite(ctx context.Context, c *clusterUnderTest) (*result, error) {
	r := &result{Date: time.Now().UTC(), Commit: s.commit(ctx), Suite: s.suite, Focus: s.focus, Labels: s.labels,
		Kubectl: "ours"}
	if s.upstream {
		r.Kubectl = "upstream"
	}
	for _, p := range s.parts() {
		report, err := s.runPart(ctx, c, p)
		if err != nil {
			return nil, fmt.Errorf("run the %s specs: %w", p.name, err)
		}
		specs, err := readReport(report)
		if err != nil {
			return nil, err
		}
		r.Specs = append(r.Specs, specs...)
	}
	r.Wall = time.Since(r.Date)
	if len(r.Specs) == 0 {
		return nil, fmt.Errorf("no spec with %s matches %q", s.labels, s.focus)
	}
	return r, nil
}

// runPart runs one part, prints a line per spec, and returns the path of ginkgo's JSON report. The whole output is in
// the file log beside it.
func (s settings) runPart(ctx context.Context, c *clusterUnderTest, p part) (string, error) {
	dir := s.output(p.name)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return "", err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return "", err
	}
	defer log.Close()
	fmt.Printf("%s specs, %d at a time (%s)\n", p.name, p.procs, log.Name())
	args := []string{"run", "--procs=" + strconv.Itoa(p.procs), "--timeout=" + s.timeout.String(), "--no-color", "-v",
		"--label-filter=" + p.labels, "--json-report=report.json", "--output-dir=" + dir}
	if s.focus != "" {
		args = append(args, "--focus="+s.focus)
	}
	args = append(args, s.bin("e2e.test"), "--", "--provider=skeleton", "--kubeconfig="+c.kubeconfig,
		"--kubectl-path="+c.kubectl,
		"--num-nodes="+strconv.Itoa(nodes), "--disable-log-dump", "--dns-domain=cluster.local")
	cmd := exec.CommandContext(ctx, s.bin("ginkgo"), args...)
	out := newProgress(os.Stdout)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, io.MultiWriter(log, out), log
	// ginkgo's children share its process group, so that ending the run ends them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	report := filepath.Join(dir, "report.json")
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil && !exists(report) {
		return "", fmt.Errorf("%w (see %s)", err, log.Name())
	}
	return report, nil
}

// commit names what is measured, marked if the working tree differs from it.
func (s settings) commit(ctx context.Context) string {
	cmd := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty")
	cmd.Dir = s.module
	out, err := cmd.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(bytes.TrimSpace(out)))
}
