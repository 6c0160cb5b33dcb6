package ipam

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	current "github.com/containernetworking/cni/pkg/types/100"
	"golang.org/x/sys/unix"
)

// network is a network list's plug-in with its files in a directory of the test.
type network struct {
	t      *testing.T
	dir    string
	ranges string
}

func newNetwork(t *testing.T, subnets ...string) *network {
	t.Helper()
	var ranges []string
	for _, s := range subnets {
		ranges = append(ranges, fmt.Sprintf(`[{"subnet":%q}]`, s))
	}
	return &network{t, t.TempDir(), strings.Join(ranges, ",")}
}

// args are those of a call for the sandbox of a pod, "" for a runtime that does not say it; more is added to CNI_ARGS.
func (n *network) args(sandbox, pod, more string) *skel.CmdArgs {
	text := "IgnoreUnknown=1;K8S_POD_NAMESPACE=default" + more
	if pod != "" {
		text += ";K8S_POD_UID=" + pod
	}
	return &skel.CmdArgs{ContainerID: sandbox, IfName: "eth0", Args: text,
		StdinData: fmt.Appendf(nil,
			`{"cniVersion":"1.0.0","name":"pods","type":"bridge","ipam":{"type":"bonsai-ipam","dataDir":%q,"ranges":[%s]}}`, n.dir, n.ranges)}
}

// add returns the addresses that the sandbox is given, joined by blanks.
func (n *network) add(sandbox, pod, more string) (string, error) {
	c, err := open(n.args(sandbox, pod, more))
	if err != nil {
		return "", err
	}
	ips, err := c.add(sandbox, "eth0")
	if err := c.close(); err != nil {
		n.t.Error(err)
	}
	var list []string
	for _, ip := range ips {
		list = append(list, ip.Address.IP.String())
	}
	return strings.Join(list, " "), err
}

func (n *network) mustAdd(sandbox, pod, want string) {
	n.t.Helper()
	if got, err := n.add(sandbox, pod, ""); err != nil || got != want {
		n.t.Errorf("%s of pod %q: %q, %v; want %q", sandbox, pod, got, err, want)
	}
}

func (n *network) del(sandbox, pod string) {
	n.t.Helper()
	if err := Del(n.args(sandbox, pod, "")); err != nil {
		n.t.Error(err)
	}
}

// TestKept: a pod has its addresses in each new sandbox, whatever came between; a pod that is new has others.
func TestKept(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, "10.244.0.0/24", "fd00:1::/64")
	n.mustAdd("a1", "a", "10.244.0.2 fd00:1::2")
	n.mustAdd("b1", "b", "10.244.0.3 fd00:1::3")
	n.del("a1", "a")
	n.del("b1", "b")
	n.mustAdd("c1", "c", "10.244.0.4 fd00:1::4")
	n.mustAdd("b2", "b", "10.244.0.3 fd00:1::3")
	n.mustAdd("d1", "d", "10.244.0.5 fd00:1::5")
	n.mustAdd("a2", "a", "10.244.0.2 fd00:1::2")
	n.mustAdd("x1", "", "10.244.0.6 fd00:1::6")
	n.del("x1", "")
	n.mustAdd("x2", "", "10.244.0.7 fd00:1::7")
	if _, err := n.add("a2", "", ""); err == nil {
		t.Error("a sandbox was given two addresses")
	}
}

// TestFull: in a network that every address of has been used, those of pods that are gone longest come first, pods that
// are there keep theirs, and where none is left the call fails and takes nothing.
func TestFull(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, "10.244.0.0/29") // .2 to .6
	for i, pod := range []string{"a", "b", "c", "d", "e"} {
		n.mustAdd(pod+"1", pod, fmt.Sprintf("10.244.0.%d", i+2))
	}
	if got, err := n.add("f1", "f", ""); err == nil {
		t.Errorf("a sixth address: %s", got)
	}
	for _, pod := range []string{"c", "a", "d", "b"} {
		n.del(pod+"1", pod)
	}
	n.mustAdd("f1", "f", "10.244.0.4") // c's
	n.mustAdd("d2", "d", "10.244.0.5")
	n.mustAdd("c2", "c", "10.244.0.2") // a's, for its own is f's
	n.mustAdd("a2", "a", "10.244.0.3") // b's
	if got, err := n.add("b2", "b", ""); err == nil {
		t.Errorf("a sixth address: %s", got)
	}
	two := newNetwork(t, "10.244.0.0/29", "fd00::/126") // two addresses of IPv6
	for i := range 2 {
		two.mustAdd(fmt.Sprint("s", i), fmt.Sprint("p", i), fmt.Sprintf("10.244.0.%d fd00::%d", i+2, i+2))
	}
	if err := Add(two.args("s2", "p2", "")); err == nil {
		t.Error("a third address of fd00::/126")
	}
	if _, err := os.Stat(filepath.Join(two.dir, "pods", "10.244.0.4")); err == nil {
		t.Error("an address of a call that failed is still taken")
	}
}

// TestAsked: who asks for an address in CNI_ARGS gets it or an error.
func TestAsked(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, "10.244.0.0/24")
	if got, err := n.add("a1", "a", ";IP=10.244.0.9"); err != nil || got != "10.244.0.9" {
		t.Error(got, err)
	}
	for _, ip := range []string{"10.244.0.9", "10.244.0.1", "10.245.0.2"} { // taken, the gateway's, elsewhere
		if got, err := n.add("b1", "b", ";IP="+ip); err == nil {
			t.Errorf("%s for %s", got, ip)
		} else if err := Del(n.args("b1", "b", "")); err != nil {
			t.Error(err)
		}
	}
	n.mustAdd("b1", "b", "10.244.0.11") // .10 was taken and freed
}

// TestAnswers: what the runtime reads, and the calls that find nothing.
func TestAnswers(t *testing.T) {
	n := newNetwork(t, "10.244.0.0/24")
	n.del("none", "none")
	if err := Check(n.args("s", "p", "")); err == nil {
		t.Error("a sandbox without an address was called good")
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = write
	err = Add(n.args("s", "p", ""))
	os.Stdout = stdout
	write.Close()
	printed, rerr := io.ReadAll(read)
	var r current.Result
	if jerr := json.Unmarshal(printed, &r); err != nil || rerr != nil || jerr != nil || r.CNIVersion != "1.0.0" ||
		len(r.IPs) != 1 || r.IPs[0].Address.String() != "10.244.0.2/24" || r.IPs[0].Gateway.String() != "10.244.0.1" {
		t.Errorf("%s, %v, %v, %v", printed, err, rerr, jerr)
	}
	if err := Check(n.args("s", "p", "")); err != nil {
		t.Error(err)
	}
	bad := n.args("s", "p", "")
	bad.StdinData = []byte(`{"name":"pods"}`)
	for name, call := range map[string]func(*skel.CmdArgs) error{"ADD": Add, "CHECK": Check, "DEL": Del} {
		if call(bad) == nil {
			t.Errorf("%s without a configuration succeeds", name)
		}
	}
}

// TestBrokenFile: a file that cannot be understood costs pods their addresses, and nothing else.
func TestBrokenFile(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, "10.244.0.0/24")
	n.mustAdd("a1", "a", "10.244.0.2")
	n.mustAdd("b1", "b", "10.244.0.3")
	n.del("a1", "a")
	if err := os.WriteFile(filepath.Join(n.dir, "pods.pods.json"), []byte(`{"pods":[{"uid":"a","addr`),
		0o600); err != nil {
		t.Fatal(err)
	}
	n.mustAdd("a2", "a", "10.244.0.4")
	n.mustAdd("c1", "c", "10.244.0.5")
}

// TestFullDisk: a pod ends on a full disk, too, and its address is free; one that begins fails and takes nothing.
func TestFullDisk(t *testing.T) {
	n := newNetwork(t, "10.244.0.0/24")
	if err := unix.Mount("tmpfs", n.dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("SKIPPED: cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(n.dir, unix.MNT_DETACH) })
	n.mustAdd("a1", "a", "10.244.0.2")
	const others = 150 // more than fit into one block of who had which address
	for i := range others {
		n.mustAdd(fmt.Sprint("s", i), fmt.Sprint("p", i), fmt.Sprintf("10.244.0.%d", i+3))
	}
	ballast := filepath.Join(n.dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err == nil {
		t.Fatal("the disk is not small")
	}
	if err := Add(n.args("c1", "c", "")); err == nil {
		t.Error("an address was given that nobody could write down")
	}
	n.del("a1", "a")
	if left, err := filepath.Glob(filepath.Join(n.dir, "pods", "10.*")); err != nil || len(left) != others {
		t.Errorf("%d are taken, %v, want those of the others", len(left), err)
	}
	if left, err := filepath.Glob(filepath.Join(n.dir, "*.new")); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	n.mustAdd("a2", "a", "10.244.0.2")
}

// TestAtOnce: many calls at once, as when a node starts, give no address twice and every pod its own.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, "10.244.0.0/24")
	const pods = 40
	had := [3][pods]string{}
	for life := range had {
		var calls sync.WaitGroup
		for i := range pods {
			calls.Go(func() {
				sandbox, pod := fmt.Sprintf("s%d-%d", i, life), fmt.Sprint("p", i)
				got, err := n.add(sandbox, pod, "")
				if err != nil {
					t.Error(err)
				}
				had[life][i] = got
				// A pod that comes and goes meanwhile takes nothing of theirs.
				if _, err := n.add("x"+sandbox, "x"+sandbox, ""); err != nil {
					t.Error(err)
				}
				n.del("x"+sandbox, "x"+sandbox)
			})
		}
		calls.Wait()
		for i := range pods {
			n.del(fmt.Sprintf("s%d-%d", i, life), fmt.Sprint("p", i))
		}
		if life > 0 && had[life] != had[0] {
			t.Fatalf("life %d:\n%v\nat first:\n%v", life, had[life], had[0])
		}
	}
	seen := slices.Clone(had[0][:])
	slices.Sort(seen)
	if len(slices.Compact(seen)) != pods {
		t.Errorf("an address was given twice: %v", seen)
	}
}

// TestMemory: a random history beside its rules. No address is remembered twice, the last who had it has it, and the
// memory has a bound.
func TestMemory(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	var m memory
	owner := map[netip.Addr]string{}
	for range 5000 {
		uid, address := fmt.Sprint("p", r.IntN(2*mostPods)),
			netip.AddrFrom4([4]byte{10, 0, byte(r.IntN(8)), byte(r.IntN(256))})
		m.note(uid, []netip.Addr{address})
		owner[address] = uid
		if got := m.of(uid); !slices.Equal(got, []netip.Addr{address}) {
			t.Fatalf("%s has %v, want %s", uid, got, address)
		}
	}
	if len(m.Pods) > mostPods {
		t.Errorf("%d pods are remembered", len(m.Pods))
	}
	seen := map[netip.Addr]bool{}
	for _, p := range m.Pods {
		if a := p.Addresses[0]; seen[a] || owner[a] != p.UID {
			t.Errorf("%s is remembered as %s's, was %s's last", a, p.UID, owner[a])
		} else {
			seen[a] = true
		}
	}
	for i := range 2 * mostPods {
		m.note(fmt.Sprint("q", i), []netip.Addr{netip.AddrFrom4([4]byte{11, 0, byte(i >> 8), byte(i)})})
	}
	if len(m.Pods) != mostPods || m.of("q0") != nil {
		t.Errorf("%d pods are remembered, and the first one's %v", len(m.Pods), m.of("q0"))
	}
}

// FuzzParseMemory: no file breaks it, and what is read of one is as good as what was written.
func FuzzParseMemory(f *testing.F) {
	f.Add([]byte(`{"pods":[{"uid":"a","addresses":["10.244.0.2","fd00::2"]},{"uid":"b","addresses":["10.244.0.2"]}]}`))
	f.Add([]byte(`{"pods":[{"uid":"","addresses":[""]},{"addresses":null}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := parseMemory(data)
		pods, addresses := map[string]bool{}, map[netip.Addr]bool{}
		for _, p := range m.Pods {
			if p.UID == "" || pods[p.UID] || len(p.Addresses) == 0 {
				t.Fatalf("%+v", m)
			}
			pods[p.UID] = true
			for _, a := range p.Addresses {
				if !a.IsValid() || addresses[a] {
					t.Fatalf("%+v", m)
				}
				addresses[a] = true
			}
		}
		if len(m.Pods) > mostPods {
			t.Fatalf("%d pods", len(m.Pods))
		}
	})
}
