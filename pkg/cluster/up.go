package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/host/kernel"
	"bonsai/pkg/cluster/supervise"
)

// Up starts the cluster, or the same cluster again, and returns when every node is Ready and the cluster's DNS answers. Each
// step is told to out with its time. What c leaves open is as it was or, for a new cluster, chosen; up is the cluster with that.
// started is false if the cluster was already up, and nothing was changed.
//
// A supervisor that runs is not yet a cluster that is up: the API server must answer and the nodes be Ready. If they are not,
// Up waits for them as after a start; without its network on the host a cluster cannot come back, and is started again.
func Up(ctx context.Context, home Home, c Config, self string, out io.Writer) (up Config, started bool, err error) {
	if c.Joined != nil {
		started, err := c.startAgain(ctx, home, self, out)
		return c, started, err
	}
	if err := c.Validate(); err != nil {
		return c, false, err
	}
	lock, err := lockMachine(ctx, machineLock)
	if err != nil {
		return c, false, err
	}
	defer lock.Close()
	if err := finishRestoration(c.DataDir); err != nil {
		return c, false, err
	}
	if c.paused() {
		if err := c.resume(ctx); err != nil {
			return c, false, err
		}
	}
	c, old, alive, err := c.compareWithRunning(ctx)
	if err != nil {
		return c, false, err
	}
	p := progress{out: out, began: time.Now()}
	var steps []upStep
	switch standing := alive && c.networkStands(); {
	case !standing:
		if err := c.checkNotServed(""); err != nil {
			return c, false, err
		}
		steps = append(c.stepsBefore(home, &c),
			upStep{"Start etcd, the control plane and the nodes", func(ctx context.Context) error { return c.startSupervisor(ctx, self) }})
	case !reflect.DeepEqual(c, old):
		if err := c.signalManagers(syscall.SIGCONT); err != nil {
			return c, false, err
		}
		fmt.Fprintf(out, "Changing the cluster in %s while it runs: %s.\n", c.DataDir, difference(old, c))
		steps = []upStep{{"Change the settings", func(ctx context.Context) error { return c.changeFrom(ctx, home, old) }}}
	default:
		if err := c.signalManagers(syscall.SIGCONT); err != nil {
			return c, false, err
		}
		if c.ready(ctx) {
			return c, false, nil
		}
		fmt.Fprintf(out, "The cluster in %s runs but is not ready: waiting for it.\n", c.DataDir)
		// A node that was being added when the command was killed is in the configuration, and its supervisor was not told.
		if err := supervise.Reload(ctx, c.layout().socket("supervisor")); err != nil {
			return c, false, err
		}
	}
	steps = append(steps, upStep{"Wait for the API server", func(ctx context.Context) error {
		lock.Close() // others can see what this cluster has
		return c.waitAPI(ctx)
	}})
	if images := c.newImages(old); alive && len(images) > 0 {
		steps = append(steps, upStep{"Load the images of add-ons", func(ctx context.Context) error { return c.loadOnNodes(ctx, images) }})
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go c.watchSpace(ctx, fail)
	if err := c.takeSteps(ctx, p, steps); err != nil {
		return c, true, err
	}
	if err := c.takeSteps(ctx, p, c.stepsAfter()); err != nil {
		return c, true, err
	}
	if err := c.sayLeftAddons(old, out); err != nil {
		return c, true, err
	}
	return c, true, c.exportContext(ctx, out)
}

// takeSteps takes steps in turn until one fails.
func (c Config) takeSteps(ctx context.Context, p progress, steps []upStep) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	go c.watchProgress(ctx)
	for _, step := range steps {
		if err := p.step(step.name, func() error { return step.run(ctx) }); err != nil {
			return c.explain(ctx, p, step.name, err)
		}
		progressed(ctx, step.name)
	}
	return nil
}

// explain says in which step a start failed, why, what components that ended meanwhile had to say, and the last errors of the kubelets.
func (c Config) explain(ctx context.Context, p progress, step string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) { // a request that ctx ended says only that it was ended
		err = cause
	}
	var epitaphs strings.Builder
	if !errors.Is(err, syscall.ENOSPC) {
		for _, ended := range c.troubled(context.WithoutCancel(ctx)) {
			epitaphs.WriteString("\n" + ended.Epitaph())
		}
		epitaphs.WriteString(c.nodesErrors(p.began))
	}
	return fmt.Errorf("%s: %w%s%s", strings.ToLower(step), err, c.whereLogsAre(), &epitaphs)
}

func (c Config) whereLogsAre() string {
	logs := c.layout().at("logs")
	if _, err := os.Stat(logs); err != nil {
		return ""
	}
	return " (logs: " + logs + ")"
}

// upStep is one step of Up.
type upStep struct {
	name string
	run  func(context.Context) error
}

// compareWithRunning returns the wanted cluster: c with what it leaves open as in the old one, which is kept in the data directory, and
// whether the supervisor of that is alive; an error if the old one cannot become the wanted one. A cluster that is new has always been as it is wanted.
func (c Config) compareWithRunning(ctx context.Context) (wanted, old Config, alive bool, err error) {
	old, err = Load(c.DataDir)
	if errors.Is(err, os.ErrNotExist) {
		return c, c, false, nil
	}
	if err != nil {
		return c, c, false, fmt.Errorf("%w (repair the file, or delete the cluster with everything in it: bonsai down --data-dir %s)", err, c.DataDir)
	}
	old.Addons = c.Addons
	c = c.filledFrom(old)
	alive = running(ctx, old)
	return c, old, alive, old.checkChange(c, alive)
}

// checkMachine checks what a start needs, all of it before anything is made, and completes c in plan.
func (c Config) checkMachine(ctx context.Context, home Home, plan *Config) error {
	if err := c.preflight(ctx); err != nil {
		return err
	}
	if err := userFileNow().check(ctx); err != nil {
		return err
	}
	m, err := c.machine(home)
	if err != nil {
		return err
	}
	*plan, err = m.plan(c)
	return err
}

// progress prints one line per step.
type progress struct {
	out   io.Writer
	began time.Time
}

func (p progress) step(name string, run func() error) error {
	began := time.Now()
	err := run()
	mark := "ok"
	if err != nil {
		mark = "FAILED"
	}
	fmt.Fprintf(p.out, "  %-46s %-6s %6.2f s  (%5.2f s)\n", name, mark, time.Since(began).Seconds(), time.Since(p.began).Seconds())
	return err
}

// running tells whether the cluster's supervisor answers.
func running(ctx context.Context, c Config) bool {
	_, err := supervise.Ask(ctx, c.layout().socket("supervisor"))
	return err == nil
}

// preflight checks that the programs, files, disk space and features of the kernel that a start needs are there. It loads kernel modules, and
// makes nothing else.
func (c Config) preflight(ctx context.Context) error {
	var errs []error
	for _, program := range []string{"ip", "nft", cmp.Or(c.OCIRuntime, defaultOCIRuntime), "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			errs = append(errs, fmt.Errorf("the program %s is missing (make install)", program))
		}
	}
	node := NodeConfig{BinDir: c.BinDir}
	for _, program := range []string{node.containerd(), node.ctr()} {
		if _, err := exec.LookPath(program); err != nil {
			errs = append(errs, fmt.Errorf("the program %s is missing (make install)", program))
		}
	}
	if _, err := os.Stat(filepath.Join(systemPlugins, "bridge")); err != nil {
		errs = append(errs, fmt.Errorf("the CNI plug-ins are missing from %s (make install)", systemPlugins))
	}
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "bonsai-network", ipamPlugin} {
		if !host.IsExecutable(c.bin(program)) {
			errs = append(errs, fmt.Errorf("%s is missing (make build)", c.bin(program)))
		}
	}
	for _, m := range c.missingMounts() {
		errs = append(errs, m)
	}
	errs = append(errs, c.checkSockets())
	errs = append(errs, c.foreignAddresses()...)
	for _, image := range c.localImages() {
		if _, err := os.Stat(c.image(image)); err != nil {
			target := "make build"
			if !slices.Contains(DefaultImages(), image) {
				target = "make addons; a release archive has the add-ons that ADDONS of make release names"
			}
			errs = append(errs, fmt.Errorf("%s is missing (%s)", c.image(image), target))
		}
	}
	return errors.Join(append(errs, c.checkDisk(), kernel.CheckControllers(cgroup.Root), kernel.Check(ctx, kernel.Needs(host.Snapshotter(host.Existing(c.DataDir)) == host.OverlaySnapshotter, c.iptablesPrograms()), kernel.LoadModule))...)
}

// prepare makes the files that the processes read.
func (c Config) prepare() error {
	// The configuration is first: by it down knows a cluster's directory, however soon a start is broken off.
	if err := errors.Join(c.save(), os.MkdirAll(c.layout().run(), 0o700)); err != nil {
		return err
	}
	if err := c.writeCloudConfig(); err != nil {
		return err
	}
	if err := c.makePKI(time.Now()); err != nil {
		return err
	}
	return c.writeKubeconfigs()
}

// supervisorName is the supervisor's own among the names of processes that have a log.
const supervisorName = "bonsai"

// startSupervisor starts this program again in the background as the supervisor and waits until it answers. Until it has, it lives no longer
// than who waits: it ends in order when its standard input does (untilReleased). It holds the data directory's lock from the
// start, so that whoever stops the cluster at any moment knows that it is there.
func (c Config) startSupervisor(ctx context.Context, self string) (err error) {
	log := c.layout().log(supervisorName)
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	before, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	lock, err := lockData(c.layout().lock())
	if err != nil {
		return err
	}
	defer lock.Close() // the supervisor has it, too
	line, release, err := os.Pipe()
	if err != nil {
		return err
	}
	defer line.Close()
	defer release.Close()
	cmd := exec.Command(self, "supervise", "--data-dir", c.DataDir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = line, f, f, "/"
	cmd.Env = c.withoutProxies(os.Environ())
	cmd.ExtraFiles = []*os.File{lock} // supervisorLock
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	var exit error
	ended := make(chan struct{})
	go func() {
		exit = cmd.Wait()
		close(ended)
	}()
	err = host.Poll(ctx, 5*time.Millisecond, func() (bool, error) {
		select {
		case <-ended:
			return false, errors.New(supervise.ProcessStatus{Name: "the supervisor", LastExit: fmt.Sprint(exit), LastWords: supervise.WordsSince(log, before)}.Epitaph())
		default:
			return running(ctx, c), nil
		}
	})
	if err == nil {
		_, err = release.Write([]byte{1})
		return err
	}
	release.Close()
	select {
	case <-ended:
	case <-time.After(stopPatience):
		cmd.Process.Kill()
	}
	return err
}

// waitAPI waits until the API server's /readyz says ok.
func (c Config) waitAPI(ctx context.Context) error {
	var last error
	err := host.Poll(ctx, 10*time.Millisecond, func() (bool, error) {
		last = c.askAPI(ctx)
		return last == nil, nil // not there yet; ctx bounds the wait
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}
