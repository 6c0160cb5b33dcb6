package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// longestGap is for how long clients of a highly available cluster may find no server, on a machine that is busy: the
// balancer needs 10 s to find a server out that does not answer, etcd a second or two to elect a leader.
const longestGap = 30 * time.Second

// TestHighAvailability: of three control planes parts of one are killed, stopped or cut off while a client writes, and
// the client goes on; what it was told is stored is there in the end, also after a stop and start of the whole.
func TestHighAvailability(t *testing.T) {
	dir := t.TempDir()
	ha := env{bin: cluster.bin, data: filepath.Join(dir, "ha"), home: dir, kubeconfig: filepath.Join(dir, "config")}
	t.Cleanup(func() { ha.command(2*time.Minute, "bonsai", "--data-dir", ha.data, "down") })
	up := []string{"--data-dir", ha.data, "--name", "ha", "up", "--control-planes", "3", "--egress=false", "--wait",
		"3m"}
	if out, err := ha.command(4*time.Minute, "bonsai", up...); err != nil {
		t.Fatal(out, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", ha.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout, config.QPS = here(2*time.Second), -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	three := func() bool {
		e, err := client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		return err == nil && len(e.Endpoints) == 3
	}
	waitFor(t, "all three are endpoints of the Service kubernetes", three)
	ready := everyServer(t, client)
	sparesMachine(t, client)
	work, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	connect := func() *kubernetes.Clientset {
		own := rest.CopyConfig(config)
		own.Dial = (&net.Dialer{}).DialContext // no other client has its connection
		client, err := kubernetes.NewForConfig(own)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	var all writers
	for i := range 6 {
		w := &writer{client: connect(), number: i}
		all = append(all, w)
		wg.Go(func() { w.run(work) })
	}

	signalTo := func(process string, s syscall.Signal) {
		if err := syscall.Kill(pidIn(t, ha, process), s); err != nil {
			t.Fatal(err)
		}
	}
	stopped := func(process string) (do, end func()) {
		return func() { signalTo(process, syscall.SIGSTOP) }, func() { signalTo(process, syscall.SIGCONT) }
	}
	stopAPI, contAPI := stopped("kube-apiserver-cp2")
	stop1, cont1 := stopped("etcd-cp1") // one of the three leads
	stop2, cont2 := stopped("etcd-cp2")
	stop3, cont3 := stopped("etcd-cp3")
	restart := make(chan error, 1)
	before := map[string]int{}
	// Who has been away has the fewest connections, and gets those of the next round: so cp2 several times.
	rounds := []struct {
		name    string
		do, end func()
	}{
		{"a killed API server", func() { signalTo("kube-apiserver-cp1", syscall.SIGKILL) }, nil},
		{"a killed etcd", func() { signalTo("etcd-cp1", syscall.SIGKILL) }, nil},
		{"the killed balancer", func() { signalTo("balancer", syscall.SIGKILL) }, nil},
		{"a stopped API server", stopAPI, contAPI},
		{"a control plane that is cut off", func() { cutOff(t, ha, "cp2") }, func() { connectAgain(t, ha, "cp2") }},
		{"a restart of all components beside a stopped etcd, which has to wait", func() {
			for _, p := range members {
				before[p] = pidIn(t, ha, p)
			}
			stop2()
			go func() { restart <- restarted(ha) }()
		}, func() {
			for _, p := range members {
				if now := pidIn(t, ha, p); now != before[p] {
					t.Errorf("%s ended while etcd-cp2 was stopped", p)
				}
			}
			cont2()
			if err := <-restart; err != nil {
				t.Error(err)
			}
			for _, p := range members {
				if now := pidIn(t, ha, p); now == before[p] {
					t.Errorf("%s was not restarted", p)
				}
			}
		}},
		{"a restart of all components", func() {
			if err := restarted(ha); err != nil {
				t.Error(err)
			}
		}, nil},
		{"a stopped etcd (2)", stop2, cont2},
		{"a stopped etcd (1)", stop1, cont1},
		{"a stopped etcd (3)", stop3, cont3},
	}
	if !*long {
		rounds = rounds[:5]
	}
	for _, c := range rounds {
		all.begin(connect)
		c.do()
		// They have all written again for long enough that whoever does not answer was found out.
		waitFor(t, c.name+": all clients go on", func() bool { return all.calm(here(2 * time.Second)) })
		gap := all.longest()
		t.Logf("%s: the longest time without a write was %v", c.name, gap.Round(time.Millisecond))
		if gap > here(longestGap) {
			t.Errorf("%s: %v without a write", c.name, gap)
		}
		if c.end != nil {
			c.end()
		}
		waitFor(t, c.name+": it is back", func() bool { return ready() && three() })
	}

	if *long {
		leaderDies(t, client, signalTo)
	}

	stop()
	wg.Wait()
	for _, args := range [][]string{{"snapshot", "save", "one"}, {"stop"}, {"start"}} {
		if out, err := ha.command(4*time.Minute, "bonsai",
			append([]string{"--data-dir", ha.data}, args...)...); err != nil {
			t.Fatal(out, err)
		}
	}
	all.check(t, client)
	if out, err := ha.command(2*time.Minute, "bonsai", "--data-dir", ha.data, "down"); err != nil {
		t.Error(out, err)
	}
}

// members are the processes of three control planes, but for the controller managers and schedulers.
var members = []string{"etcd-cp1", "etcd-cp2", "etcd-cp3", "kube-apiserver-cp1", "kube-apiserver-cp2",
	"kube-apiserver-cp3"}

func restarted(ha env) error {
	if out, err := ha.command(4*time.Minute, "bonsai", "--data-dir", ha.data, "restart"); err != nil {
		return fmt.Errorf("bonsai restart: %w\n%s", err, out)
	}
	return nil
}

// leaderDies stops the controller manager that leads, and waits until another one does.
func leaderDies(t *testing.T, client *kubernetes.Clientset, signalTo func(process string, s syscall.Signal)) {
	t.Helper()
	lease := func() string {
		l, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "kube-controller-manager",
			metav1.GetOptions{})
		if err != nil || l.Spec.HolderIdentity == nil {
			return ""
		}
		member, _, _ := strings.Cut(*l.Spec.HolderIdentity, "_")
		return member
	}
	led := ""
	waitFor(t, "a controller manager leads", func() bool { led = lease(); return led != "" })
	began := time.Now()
	signalTo("kube-controller-manager-"+led, syscall.SIGSTOP)
	waitFor(t, "another controller manager leads", func() bool { now := lease(); return now != "" && now != led })
	t.Logf("another controller manager leads after %v", time.Since(began).Round(time.Millisecond))
	signalTo("kube-controller-manager-"+led, syscall.SIGKILL)
}

// writer writes ConfigMaps one after the other, and remembers when it was told that one was stored.
type writer struct {
	number int

	mu     sync.Mutex
	client *kubernetes.Clientset
	stored []string
	at     []time.Time // of the latest begin and of each write since
}

const writtenTo = "default"

func (w *writer) run(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		name := fmt.Sprintf("w-%d-%d", w.number, n)
		w.mu.Lock()
		client := w.client
		w.mu.Unlock()
		_, err := client.CoreV1().ConfigMaps(writtenTo).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) { // client-go tries again where it is safe
			w.mu.Lock()
			w.stored, w.at = append(w.stored, name), append(w.at, time.Now())
			w.mu.Unlock()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// calm reports whether, for so long, there has been no usual second without a write, and as long had passed before
// that.
func (w *writer) calm(long time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Sub(w.at[0]) < 2*long || now.Sub(w.at[len(w.at)-1]) > here(time.Second) {
		return false
	}
	for i := len(w.at) - 1; i > 0 && now.Sub(w.at[i]) < long; i-- {
		if w.at[i].Sub(w.at[i-1]) > here(time.Second) {
			return false
		}
	}
	return true
}

// writers write at the same time.
type writers []*writer

// begin begins to measure, with new connections: the balancer leads them where there are the fewest, so to who was away
// before.
func (all writers) begin(connect func() *kubernetes.Clientset) {
	for _, w := range all {
		client := connect()
		w.mu.Lock()
		w.client, w.at = client, []time.Time{time.Now()}
		w.mu.Unlock()
	}
}

func (all writers) calm(long time.Duration) bool {
	return !slices.ContainsFunc(all, func(w *writer) bool { return !w.calm(long) })
}

// longest is the longest time since begin that one of them waited between two writes.
func (all writers) longest() (gap time.Duration) {
	for _, w := range all {
		w.mu.Lock()
		for i := 1; i < len(w.at); i++ {
			gap = max(gap, w.at[i].Sub(w.at[i-1]))
		}
		w.mu.Unlock()
	}
	return gap
}

// check looks for all that was stored.
func (all writers) check(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	list, err := client.CoreV1().ConfigMaps(writtenTo).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].Name] = true
	}
	written := 0
	for _, w := range all {
		for _, name := range w.stored {
			written++
			if !there[name] {
				t.Errorf("%s was stored and is lost", name)
			}
		}
	}
	t.Logf("%d writes", written)
}

// pidIn is the pid of a process of the host in a cluster.
func pidIn(t *testing.T, e env, process string) int {
	t.Helper()
	out, _ := e.command(time.Minute, "bonsai", "--data-dir", e.data, "status") // fails while something is down
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "host" && f[1] == process {
			pid, err := strconv.Atoi(f[2])
			if err == nil && pid > 0 {
				return pid
			}
		}
	}
	t.Fatalf("no %s in\n%s", process, out)
	return 0
}

// everyServer returns what reports whether each of the API servers is ready, by the address of its own.
func everyServer(t *testing.T, client *kubernetes.Clientset) func() bool {
	t.Helper()
	slice, err := client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	asker := http.Client{Timeout: here(2 * time.Second),
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	return func() bool {
		for _, e := range slice.Endpoints {
			resp, err := asker.Get(fmt.Sprintf("https://%s:%d/readyz", e.Addresses[0], *slice.Ports[0].Port))
			if err != nil {
				return false
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return false
			}
		}
		return true
	}
}

// hostOf returns the host's address in the node network of an address.
func hostOf(address string) string { return address[:strings.LastIndex(address, ".")] + ".1" }

// sparesMachine tries to have the API servers connect to the host and to each other by a Service's endpoints.
func sparesMachine(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	slice, err := client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	port := slice.Ports[0].Port
	addresses := []string{hostOf(slice.Endpoints[0].Addresses[0])}
	for _, e := range slice.Endpoints {
		addresses = append(addresses, e.Addresses[0])
	}
	for i, address := range addresses {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("machine-%d", i),
			Labels: map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("machine-%d", i)}}
		_, err := client.CoreV1().Services("default").Create(t.Context(),
			&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}},
			metav1.CreateOptions{})
		if err == nil {
			_, err = client.DiscoveryV1().EndpointSlices("default").Create(t.Context(),
				&discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
					Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
					Ports:     []discoveryv1.EndpointPort{{Name: new(string), Port: port}}}, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		path := "/api/v1/namespaces/default/services/https:" + meta.Name + ":443/proxy/version"
		var body []byte
		answered := func() bool {
			body, err = client.RESTClient().Get().AbsPath(path).DoRaw(t.Context())
			return !apierrors.IsServiceUnavailable(err) // the cache has no endpoints yet
		}
		waitFor(t, path+" is answered", answered)
		if !apierrors.IsBadRequest(err) || !strings.Contains(string(body), "address not allowed") {
			t.Errorf("an API server connects to %s: %s, %v", address, body, err)
		}
	}
}

// cutOff drops all that a control plane sends and is sent, until connectAgain.
func cutOff(t *testing.T, e env, member string) {
	t.Helper()
	inNetworkOf(t, e, member, `table inet cut {
	chain input { type filter hook input priority 0; policy drop; iif lo accept; }
	chain output { type filter hook output priority 0; policy drop; oif lo accept; }
}`)
}

func connectAgain(t *testing.T, e env, member string) {
	t.Helper()
	inNetworkOf(t, e, member, "delete table inet cut")
}

func inNetworkOf(t *testing.T, e env, member, rules string) {
	t.Helper()
	cmd := exec.Command("nsenter", "--net=/proc/"+strconv.Itoa(pidIn(t, e, "etcd-"+member))+"/ns/net", "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("nft: %s, %v", out, err)
	}
}
