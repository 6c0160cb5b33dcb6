package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// onLAN makes machines that share a network, as machines on a switch do: 192.0.2.1, .2, …
func onLAN(t *testing.T, names ...string) []machine {
	t.Helper()
	const lan = "e2e-lan"
	dir := t.TempDir()
	var all []machine
	for i, name := range names {
		m := newMachine(t, name, dir)
		if i == 0 {
			m.host("ip", "netns", "add", lan)
			t.Cleanup(func() { m.host("ip", "netns", "del", lan) })
			m.host("ip", "-n", lan, "link", "add", "br0", "type", "bridge")
			m.host("ip", "-n", lan, "link", "set", "br0", "up")
		}
		m.host("ip", "link", "add", m.cable(), "type", "veth", "peer", "name", m.netns)
		m.wire(m.netns, fmt.Sprintf("192.0.2.%d", i+1))
		m.host("ip", "link", "set", m.cable(), "netns", lan)
		m.host("ip", "-n", lan, "link", "set", m.cable(), "master", "br0", "up")
		// A machine that is cut off from the others cannot leave in order.
		t.Cleanup(func() { m.bonsai("down", "--force") })
		all = append(all, m)
	}
	return all
}

// cable is the name of the machine's end at the switch.
func (m machine) cable() string { return "sw" + strings.TrimPrefix(m.netns, "e2e") }

// plug pulls the machine's cable out of the switch, or puts it in: "down" or "up".
func (m machine) plug(state string) {
	m.t.Helper()
	m.host("ip", "-n", "e2e-lan", "link", "set", m.cable(), state)
}

// cutPower kills every process of the machine at once: they die with their supervisor, and it has no time for anything.
func (m machine) cutPower() {
	m.t.Helper()
	socket := filepath.Join(m.data, "run", "supervisor.sock")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		Dial: func(string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	resp, err := client.Get("http://control/status")
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	var status struct {
		PID       int
		Processes []struct{ PID int }
	}
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil || status.PID == 0 {
		m.t.Fatal(status, err)
	}
	if err := syscall.Kill(status.PID, syscall.SIGKILL); err != nil {
		m.t.Fatal(err)
	}
	waitFor(m.t, "the end of all processes", func() bool {
		for _, p := range status.Processes {
			if !errors.Is(syscall.Kill(p.PID, 0), syscall.ESRCH) {
				return false
			}
		}
		return true
	})
}

// restart restarts the machine's components as if no other machine ran here: all of this host share one lock.
func (m machine) restart() (string, error) {
	const script = `touch /run/bonsai.lock "$1" && mount --bind "$1" /run/bonsai.lock && exec "$2" --data-dir "$3" restart`
	enter, err := exec.LookPath("nsenter")
	if err != nil {
		return "", err
	}
	return m.command(5*time.Minute, enter, "--net=/run/netns/"+m.netns, "unshare", "--mount", "sh", "-c", script,
		"sh", filepath.Join(m.home, "lock"), filepath.Join(m.bin, "bonsai"), m.data)
}

// members returns etcd's members as `bonsai status` of a machine prints them, by name: voter, learner, or away.
func (m machine) members() map[string]string {
	out, _ := m.try("bonsai", "--data-dir", m.data, "status") // it fails while one is away
	found := map[string]string{}
	_, table, _ := strings.Cut(out, "ETCD MEMBER")
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		switch {
		case len(words) < 4 || !strings.HasPrefix(words[len(words)-1], "https://"):
		case words[1] == "away":
			found[words[0]] = "away"
		default:
			found[words[0]] = words[len(words)-2]
		}
	}
	return found
}

// TestMachines: three machines have control planes, pods, Services and DNS reach across them. Any one of them may
// restart, lose power or be cut off: the others go on, and it catches up. A machine leaves in order, joins again after
// it has lost everything, and when two of three are gone, the last one goes on alone.
func TestMachines(t *testing.T) {
	isLong(t)
	all := onLAN(t, "m1", "m2", "m3")
	first, second, third := all[0], all[1], all[2]
	first.bonsai("up", "--advertise-address", "192.0.2.1")
	join := strings.Fields(first.bonsai("token", "create", "--upload-certs", "--print-join-command"))[1:]
	wrong := slices.Clone(join)
	wrong[len(wrong)-1] = strings.Repeat("0", 64)
	if out, err := second.try("bonsai", append([]string{"--data-dir", second.data}, wrong...)...); err == nil ||
		!strings.Contains(out, "--certificate-key") {
		t.Fatal("joined with a key that nobody made: ", out)
	}
	second.bonsai(append(join, "--node-name", "m2")...)
	third.bonsai(append(join, "--node-name", "m3")...)
	complete := func(m machine) func() bool {
		return func() bool {
			found := m.members()
			return len(found) == 3 && found["bonsai"] == "voter" && found["m2"] == "voter" && found["m3"] == "voter"
		}
	}
	for _, m := range all {
		waitFor(t, "three members, seen from "+m.netns, complete(m))
	}
	if out := third.run("kubectl", "get", "endpointslices", "kubernetes", "-o",
		"jsonpath={.endpoints[*].addresses[*]}"); out != "10.77.0.1 192.0.2.2 192.0.2.3" {
		t.Errorf("the Service kubernetes leads to %s", out)
	}

	manifest := filepath.Join(t.TempDir(), "spread.yaml")
	three := strings.Replace(spread, "replicas: 2", "replicas: 3", 1)
	if err := os.WriteFile(manifest, []byte(three), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"apply -f " + manifest, "expose deployment web --port=80 --target-port=8080",
		"rollout status deployment web " + bound(80)} {
		second.run("kubectl", strings.Fields(args)...)
	}
	for pod := range strings.FieldsSeq(third.run("kubectl", "get", "pods", "-l", "app=web", "-o", "name")) {
		for _, url := range []string{"http://web/hostname", "http://web.default.svc.cluster.local/hostname"} {
			waitFor(t, pod+" reaches "+url, func() bool {
				out, err := first.try("kubectl", "exec", pod, "--", "wget", "-qO-", url)
				return err == nil && strings.HasPrefix(out, "web-")
			})
		}
	}

	written := 0
	write := func(by machine) {
		t.Helper()
		written++
		name := fmt.Sprint("written-", written)
		waitFor(t, by.netns+" writes", func() bool {
			out, err := by.try("kubectl", "create", "configmap", name, "--request-timeout=5s")
			return err == nil || strings.Contains(out, "already exists")
		})
	}
	caughtUp := func(m machine) {
		t.Helper()
		waitFor(t, "three members, seen from "+m.netns, complete(m))
		waitFor(t, m.netns+" has what was written meanwhile", func() bool {
			out, err := m.try("kubectl", "get", "configmap", fmt.Sprint("written-", written), "-o", "name")
			return err == nil && out != ""
		})
	}
	// Restarts that begin at the same time follow one another, so that two of three etcds are always there.
	var restarts sync.WaitGroup
	said := make([]string, len(all))
	for i, m := range all {
		restarts.Go(func() {
			out, err := m.restart()
			if err != nil {
				t.Errorf("%s does not restart: %v: %s", m.netns, err, out)
			}
			said[i] = out
		})
	}
	write(first)
	restarts.Wait()
	if out := strings.Join(said, ""); strings.Count(out, "is restarting: wait for it") < 2 {
		t.Error("machines did not wait for one another: ", out)
	}
	for _, m := range all {
		caughtUp(m)
	}
	for i, m := range all {
		other := all[(i+1)%len(all)]
		m.cutPower()
		write(other)
		m.bonsai("start")
		caughtUp(m)

		m.plug("down")
		write(other)
		if _, err := m.try("bonsai", "--data-dir", m.data, "down"); err == nil {
			t.Fatal(m.netns, " left although no majority could let it go")
		}
		m.plug("up")
		caughtUp(m)
	}

	// A machine leaves and comes back with nothing; so does one that was lost.
	third.bonsai("down")
	waitFor(t, "two members", func() bool { return len(second.members()) == 2 })
	again := strings.Fields(second.bonsai("token", "create", "--upload-certs", "--print-join-command"))[1:]
	third.bonsai(append(again, "--node-name", "m3")...)
	third.cutPower()
	first.bonsai("node", "remove", "m3")
	third.bonsai("down", "--force")
	third.bonsai(append(again, "--node-name", "m3")...)
	caughtUp(first)

	// Without the first machine, the others go on and start again; another one joins as a node.
	first.cutPower()
	third.bonsai("stop")
	third.bonsai("start")
	write(third)

	// Two of three are gone for good.
	third.cutPower()
	second.bonsai("stop")
	second.bonsai("start", "--force-new-cluster")
	write(second)
	waitFor(t, "the last machine counts on no other", func() bool { return len(second.members()) == 0 })
}
