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

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/host/kernel"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/snapshot"
	"bonsai/pkg/cluster/supervise"
	"bonsai/pkg/cluster/systemd"
)

// Up starts the cluster, or the same cluster again, and returns when every node is Ready and the cluster's DNS answers.
// Each step is told to out with its time. What c leaves open is as it was or, for a new cluster, chosen; up is the
// cluster with that. started is false if the cluster was already up, and nothing was changed.
//
// A supervisor that runs is not yet a cluster that is up: the API server must answer and the nodes be Ready. If they
// are not, Up waits for them as after a start; without its network on the host a cluster cannot come back, and is
// started again.
func Up(ctx context.Context, home machine.Home, c plan.Config, self string, out io.Writer) (up plan.Config,
	started bool,
	err error) {
	if c.Joined != nil {
		started, err := startAgain(ctx, c, home, self, out)
		return c, started, err
	}
	if err := c.Validate(); err != nil {
		return c, false, err
	}
	lock, err := machine.Lock(ctx)
	if err != nil {
		return c, false, err
	}
	defer lock.Close()
	if err := snapshot.Finish(c.DataDir); err != nil {
		return c, false, err
	}
	if paused(c) {
		if err := resume(ctx, c); err != nil {
			return c, false, err
		}
	}
	c, old, alive, err := compareWithRunning(ctx, c)
	if err != nil {
		return c, false, err
	}
	p := progress{out: out, began: time.Now()}
	var steps []upStep
	switch standing := alive && network.Stands(c); {
	case !standing:
		if err := checkNotServed(c, ""); err != nil {
			return c, false, err
		}
		steps = append(stepsBefore(c, home, &c),
			upStep{"Start etcd, the control plane and the nodes", func(ctx context.Context) error {
				return startSupervisor(ctx, c, self)
			}})
	case !reflect.DeepEqual(c, old):
		if err := signalManagers(c, syscall.SIGCONT); err != nil {
			return c, false, err
		}
		fmt.Fprintf(out, "Changing the cluster in %s while it runs: %s.\n", c.DataDir, plan.Difference(old, c))
		steps = []upStep{{"Change the settings", func(ctx context.Context) error {
			return changeFrom(ctx, c, home, old)
		}}}
	default:
		if err := signalManagers(c, syscall.SIGCONT); err != nil {
			return c, false, err
		}
		if allReady(ctx, c) {
			return c, false, nil
		}
		fmt.Fprintf(out, "The cluster in %s runs but is not ready: waiting for it.\n", c.DataDir)
		// A node that was being added when the command was killed is in the configuration, and its supervisor was not
		// told.
		if err := supervise.Reload(ctx, c.Layout().Socket("supervisor")); err != nil {
			return c, false, err
		}
	}
	steps = append(steps, upStep{"Wait for the API server", func(ctx context.Context) error {
		lock.Close() // others can see what this cluster has
		return client.WaitReady(ctx, c)
	}})
	if images := c.NewImages(old); alive && len(images) > 0 {
		steps = append(steps, upStep{"Load the images of add-ons", func(ctx context.Context) error {
			return loadOnNodes(ctx, c, images)
		}})
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go watchSpace(ctx, c, fail)
	if err := takeSteps(ctx, c, p, steps); err != nil {
		return c, true, err
	}
	if err := takeSteps(ctx, c, p, stepsAfter(c)); err != nil {
		return c, true, err
	}
	if err := sayLeftAddons(c, old, out); err != nil {
		return c, true, err
	}
	return c, true, kubeconfig.Export(ctx, c, out)
}

// takeSteps takes steps in turn until one fails.
func takeSteps(ctx context.Context, c plan.Config, p progress, steps []upStep) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	go watchProgress(ctx, c)
	for _, step := range steps {
		if err := p.step(step.name, func() error { return step.run(ctx) }); err != nil {
			return explain(ctx, c, p, step.name, err)
		}
		host.Progressed(ctx, step.name)
	}
	return nil
}

// explain says in which step a start failed, why, what components that ended meanwhile had to say, and the last errors
// of the kubelets.
func explain(ctx context.Context, c plan.Config, p progress, step string, err error) error {
	// a request that ctx ended says only that it was ended
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = cause
	}
	var epitaphs strings.Builder
	if !errors.Is(err, syscall.ENOSPC) {
		for _, ended := range troubled(context.WithoutCancel(ctx), c) {
			epitaphs.WriteString("\n" + ended.Epitaph())
		}
		epitaphs.WriteString(nodesErrors(c, p.began))
	}
	return fmt.Errorf("%s: %w%s%s", strings.ToLower(step), err, whereLogsAre(c), &epitaphs)
}

func whereLogsAre(c plan.Config) string {
	logs := c.Layout().At("logs")
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

// compareWithRunning returns the wanted cluster: c with what it leaves open as in the old one, which is kept in the
// data directory, and whether the supervisor of that is alive; an error if the old one cannot become the wanted one. A
// cluster that is new has always been as it is wanted.
func compareWithRunning(ctx context.Context, c plan.Config) (wanted, old plan.Config, alive bool, err error) {
	old, err = datadir.Load(c.DataDir)
	if errors.Is(err, os.ErrNotExist) {
		return c, c, false, nil
	}
	if err != nil {
		return c, c, false, fmt.Errorf(
			"%w (repair the file, or delete the cluster with everything in it: bonsai down --data-dir %s)", err,
			c.DataDir)
	}
	old.Addons = c.Addons
	c = c.FilledFrom(old)
	alive = running(ctx, old)
	return c, old, alive, old.CheckChange(c, alive)
}

// checkMachine checks what a start needs, all of it before anything is made, and completes c in plan.
func checkMachine(ctx context.Context, c plan.Config, home machine.Home, plan *plan.Config) error {
	if err := preflight(ctx, c); err != nil {
		return err
	}
	if err := kubeconfig.Check(ctx); err != nil {
		return err
	}
	m, err := survey(c, home)
	if err != nil {
		return err
	}
	*plan, err = m.Plan(c)
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
	fmt.Fprintf(p.out, "  %-46s %-6s %6.2f s  (%5.2f s)\n", name, mark, time.Since(began).Seconds(),
		time.Since(p.began).Seconds())
	return err
}

// running reports whether the cluster's supervisor answers.
func running(ctx context.Context, c plan.Config) bool {
	_, err := supervise.Ask(ctx, c.Layout().Socket("supervisor"))
	return err == nil
}

// preflight checks that the programs, files, disk space and features of the kernel that a start needs are there. It
// loads kernel modules, and makes nothing else.
func preflight(ctx context.Context, c plan.Config) error {
	var errs []error
	for _, program := range []string{"ip", "nft", cmp.Or(c.OCIRuntime, plan.DefaultOCIRuntime), "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			errs = append(errs, fmt.Errorf("the program %s is missing (make install)", program))
		}
	}
	programs := node.Config{BinDir: c.BinDir}
	for _, program := range []string{programs.Containerd(), programs.CTR()} {
		if _, err := exec.LookPath(program); err != nil {
			errs = append(errs, fmt.Errorf("the program %s is missing (make install)", program))
		}
	}
	if _, err := os.Stat(filepath.Join(node.SystemPlugins, "bridge")); err != nil {
		errs = append(errs, fmt.Errorf("the CNI plug-ins are missing from %s (make install)", node.SystemPlugins))
	}
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet",
		"kube-proxy", "bonsai-network", node.IPAMPlugin} {
		if !host.IsExecutable(c.Bin(program)) {
			errs = append(errs, fmt.Errorf("%s is missing (make build)", c.Bin(program)))
		}
	}
	for _, m := range node.MissingMounts(c) {
		errs = append(errs, m)
	}
	errs = append(errs, machine.CheckSockets(c))
	errs = append(errs, machine.ForeignAddresses(c)...)
	for _, image := range c.LocalImages() {
		if _, err := os.Stat(c.Image(image)); err != nil {
			target := "make build"
			if !slices.Contains(plan.DefaultImages(), image) {
				target = "make addons; a release archive has the add-ons that ADDONS of make release names"
			}
			errs = append(errs, fmt.Errorf("%s is missing (%s)", c.Image(image), target))
		}
	}
	return errors.Join(append(errs, machine.CheckSpace(c), kernel.CheckControllers(cgroup.Root),
		kernel.Check(ctx, kernel.Needs(host.Snapshotter(host.Existing(c.DataDir)) == host.OverlaySnapshotter,
			c.IptablesPrograms()), kernel.LoadModule))...)
}

// checkNotServed refuses to replace a supervisor that a service manager runs (systemd.CheckNotServed).
func checkNotServed(c plan.Config, again string) error {
	if !datadir.IsLocked(c.Layout().Lock()) {
		return nil
	}
	return systemd.CheckNotServed(c.Layout(), again)
}

// prepare makes the files that the processes read.
func prepare(c plan.Config) error {
	// The configuration is first: by it down knows a cluster's directory, however soon a start is broken off.
	if err := errors.Join(datadir.Save(c), os.MkdirAll(c.Layout().Run(), 0o700)); err != nil {
		return err
	}
	if err := writeCloudConfig(c); err != nil {
		return err
	}
	if err := pki.Make(c, time.Now()); err != nil {
		return err
	}
	return kubeconfig.WriteAll(c)
}

// supervisorName is the supervisor's own among the names of processes that have a log.
const supervisorName = "bonsai"

// startSupervisor starts this program again in the background as the supervisor and waits until it answers. Until it
// has, it lives no longer than who waits: it ends in order when its standard input does (untilReleased). It holds the
// data directory's lock from the start, so that whoever stops the cluster at any moment knows that it is there.
func startSupervisor(ctx context.Context, c plan.Config, self string) (err error) {
	log := c.Layout().Log(supervisorName)
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
	lock, err := datadir.Lock(c.Layout().Lock())
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
	cmd.Env = c.Environ(os.Environ())
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
			return false, errors.New(
				supervise.ProcessStatus{Name: "the supervisor", LastExit: fmt.Sprint(exit),
					LastWords: supervise.WordsSince(log, before)}.Epitaph())
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
