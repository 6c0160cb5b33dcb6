package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// logBytes is how much a log of the part kubectl has.
const logBytes = 200 << 20

// measureKubectl runs the side's kubectl, with a warm discovery cache, in front of our API server: the server is the
// same for both sides.
func measureKubectl(ctx context.Context, s side) ([]figure, error) {
	srv, err := startServer(ctx, side{bin: filepath.Dir(s.etcd), etcd: s.etcd})
	if err != nil {
		return nil, err
	}
	defer srv.stop()
	if _, err := srv.load.many(ctx, s.pods, 16, func(i int) request {
		return request{method: "POST", path: podsPath, body: pod(i, ""), want: 201}
	}); err != nil {
		return nil, err
	}
	k := &client{program: filepath.Join(s.bin, "kubectl"), home: filepath.Join(srv.dir, "home")}
	if err := os.MkdirAll(filepath.Join(k.home, ".kube"), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(k.home, ".kube", "config"), srv.load.kubeconfig(), 0o600); err != nil {
		return nil, err
	}
	if _, err := k.run(ctx, "create", "configmap", "x", "-n", namespace); err != nil { // and so discovery is cached
		return nil, err
	}
	out, err := k.reads(ctx, s.pods)
	if err != nil {
		return nil, err
	}
	applied, err := k.applies(ctx)
	if err != nil {
		return nil, err
	}
	logs, err := k.logs(ctx)
	return append(append(out, applied...), logs...), err
}

// client is a kubectl and the directory of its user.
type client struct{ program, home string }

// cost is what one run took.
type cost struct {
	wall, cpu float64 // in seconds
	rss       float64 // at most, in MB
}

func (k *client) run(ctx context.Context, args ...string) (cost, error) {
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, k.program, args...)
	cmd.Env = append(os.Environ(), "HOME="+k.home, "KUBECONFIG="+filepath.Join(k.home, ".kube", "config"))
	cmd.Stderr = &complaint
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return cost{}, fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, complaint.Bytes())
	}
	c := cost{wall: time.Since(began).Seconds(),
		cpu: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.rss = float64(usage.Maxrss) / 1024
	}
	return c, nil
}

// usual runs a command several times, and returns the middle of each figure.
func usual(times int, run func() (cost, error)) (cost, error) {
	var walls, cpus, sizes []float64
	for range times {
		c, err := run()
		if err != nil {
			return cost{}, err
		}
		walls, cpus, sizes = append(walls, c.wall), append(cpus, c.cpu), append(sizes, c.rss)
	}
	return cost{median(walls), median(cpus), median(sizes)}, nil
}

func (c cost) figures(name string) []figure {
	return []figure{{name, "ms", c.wall * 1000}, {"  CPU", "ms", c.cpu * 1000}, {"  peak RSS", "MB", c.rss}}
}

func (k *client) reads(ctx context.Context, pods int) ([]figure, error) {
	one, err := usual(15, func() (cost, error) { return k.run(ctx, "get", "configmap", "x", "-n", namespace) })
	if err != nil {
		return nil, err
	}
	all, err := usual(5, func() (cost, error) { return k.run(ctx, "get", "pods", "-A") })
	return append(one.figures("get cm x"), all.figures(fmt.Sprintf("get pods -A, %d", pods))...), err
}

// applies applies 500 objects: new ones three times, each time in a namespace of their own, then the last ones again as
// they are and changed.
func (k *client) applies(ctx context.Context) ([]figure, error) {
	file := filepath.Join(k.home, "objects.yaml")
	turn := 0
	apply := func(objects []byte, flags ...string) (cost, error) {
		if err := os.WriteFile(file, objects, 0o600); err != nil {
			return cost{}, err
		}
		return k.run(ctx, append([]string{"apply", "-f", file, "-n", fmt.Sprintf("apply-%d", turn)}, flags...)...)
	}
	created := func(flags ...string) (cost, error) {
		turn++
		if _, err := k.run(ctx, "create", "namespace", fmt.Sprintf("apply-%d", turn)); err != nil {
			return cost{}, err
		}
		return apply(objects("a"), flags...)
	}
	var out []figure
	for _, one := range []struct {
		name  string
		times int
		run   func() (cost, error)
	}{
		{"apply --server-side of 500 objects, created", 3, func() (cost, error) { return created("--server-side") }},
		{"apply of 500 objects, created", 3, func() (cost, error) { return created() }},
		{"  unchanged", 1, func() (cost, error) { return apply(objects("a")) }},
		{"  changed", 1, func() (cost, error) { return apply(objects("b")) }},
	} {
		c, err := usual(one.times, one.run)
		if err != nil {
			return nil, err
		}
		out = append(out, c.figures(one.name)...)
	}
	return out, nil
}

// objects are 100 ConfigMaps, Services, Deployments, Secrets and Roles each, with value in all of them.
func objects(value string) []byte {
	var out bytes.Buffer
	for i := range 100 {
		fmt.Fprintf(&out, `---
apiVersion: v1
kind: ConfigMap
metadata: {name: c-%[1]d}
data: {key: %[2]s, other: "%[3]s"}
---
apiVersion: v1
kind: Service
metadata: {name: s-%[1]d, labels: {value: %[2]s}}
spec: {selector: {app: a-%[1]d}, ports: [{port: 80, targetPort: 8080}]}
---
%[4]s
---
apiVersion: v1
kind: Secret
metadata: {name: k-%[1]d}
stringData: {word: %[2]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r-%[1]d, labels: {value: %[2]s}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
`, i, value, strings.Repeat("x", 50), deployment(i, value))
	}
	return out.Bytes()
}

// logs follows a log of lines of 108 bytes that a server on loopback has in memory.
func (k *client) logs(ctx context.Context) ([]figure, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Handler: logServer(), ReadHeaderTimeout: 10 * time.Second}
	go srv.Serve(listener) // ends with Close
	defer srv.Close()
	c, err := usual(3, func() (cost, error) {
		return k.run(ctx, "logs", "-f", "p", "-n", namespace, "--server", "http://"+listener.Addr().String(),
			"--cache-dir", filepath.Join(k.home, "logs"))
	})
	if err != nil {
		return nil, err
	}
	return append([]figure{{"logs -f", "MB/s", logBytes / c.wall / 1e6}}, c.figures("logs -f")[1:]...), nil
}

// logServer has one pod and its log.
func logServer() http.Handler {
	lines := bytes.Repeat([]byte(strings.Repeat("x", 107)+"\n"), 1<<20/108)
	mux := http.NewServeMux()
	for path, body := range map[string]string{
		"/api":                            `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":                           `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1":                         `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list"]}]}`,
		"/api/v1/namespaces/bench/pods/p": `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"bench"},"spec":{"containers":[{"name":"c"}]}}`,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, body)
		})
	}
	mux.HandleFunc("/api/v1/namespaces/bench/pods/p/log", func(w http.ResponseWriter, _ *http.Request) {
		for sent := 0; sent < logBytes; sent += len(lines) {
			if _, err := w.Write(lines); err != nil {
				return
			}
		}
	})
	return mux
}
