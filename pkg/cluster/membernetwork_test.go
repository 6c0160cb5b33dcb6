package cluster

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestLocalNetworks: the API servers of several control planes find the addresses of the host and of each other in the
// namespaces that they are given, which are gone with the cluster. It runs in a network namespace of its own.
func TestLocalNetworks(t *testing.T) {
	for _, program := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(program); err != nil || os.Geteuid() != 0 {
			t.Skip("SKIPPED: needs root, ip and nft")
		}
	}
	if c := plan.Default("/data", "/bin"); len(c.LocalNetworks()) != 0 {
		t.Errorf("the only control plane is on the host, and is given %v", c.LocalNetworks())
	}
	runtime.LockOSThread() // never unlocked: the thread's namespace ends with it
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("SKIPPED: no network namespace: %v", err)
	}
	ctx := t.Context()
	c := plantest.Config(t)
	c.ControlPlanes = 3
	if err := network.Make(ctx, c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Remove(ctx, c) })
	want := []string{c.Networks().HostIP().String()}
	for _, m := range c.Members() {
		want = append(want, m.Address().String())
	}
	files := c.LocalNetworks()
	if len(files) != len(want) {
		t.Fatalf("the networks are %v", files)
	}
	for i, file := range files {
		if got, err := addressesOf(file); err != nil || !slices.Contains(got, want[i]) {
			t.Errorf("%s has %v, %v; want %s", file, got, err, want[i])
		}
	}
	if err := network.Remove(ctx, c); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(plan.NetnsDir + c.Mark() + "*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// addressesOf lists the addresses in a network namespace.
func addressesOf(file string) (texts []string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlock it
		var ns *os.File
		if ns, err = os.Open(file); err != nil {
			return
		}
		defer ns.Close()
		if err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return
		}
		var all []net.Addr
		all, err = net.InterfaceAddrs()
		for _, a := range all {
			if n, ok := a.(*net.IPNet); ok {
				texts = append(texts, n.IP.String())
			}
		}
	}()
	<-done
	return texts, err
}
