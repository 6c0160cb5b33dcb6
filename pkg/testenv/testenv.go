package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/reservedport"
)

// Config says where an environment gets its programs and keeps its files.
type Config struct {
	// BinDir has etcd, kube-apiserver, kube-controller-manager and kube-scheduler.
	BinDir string
	// Dir is made, and holds all that the environment writes, logs too. "" is a new one among the system's temporary
	// files. There must be nothing at that path, which sockets' paths begin with, so that it has at most 90 bytes. Stop
	// removes it.
	Dir string
	// Flags are further flags by program, after our own.
	Flags map[string][]string
}

// Environment is a control plane.
type Environment struct {
	dir       string
	processes *processes // nil if it is another process's (Open)
	reserved  []*os.File
}

// The programs.
const (
	etcdName              = "etcd"
	apiserverName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	schedulerName         = "kube-scheduler"
)

// loopback is where all of them listen, but etcd.
const loopback = "127.0.0.1"

// longestDir is how long a directory's path may be, for its sockets' may have 107 bytes.
const longestDir = 90

// Start starts an environment and waits until everything in it is ready: the API server answers, the namespaces have
// their service accounts, and the controllers and the scheduler know all objects. Its processes end with this one,
// whatever becomes of it.
func Start(ctx context.Context, c Config) (_ *Environment, err error) {
	dir := c.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "testenv-"); err != nil {
			return nil, err
		}
	} else if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	e := &Environment{dir: dir, processes: newProcesses()}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Stop())
		}
	}()
	if len(dir) > longestDir {
		return nil, fmt.Errorf("the path %s is too long for sockets in it: more than %d bytes", dir, longestDir)
	}
	ports := map[string]int{}
	for _, name := range []string{apiserverName, controllerManagerName, schedulerName} {
		port, hold, err := reservedport.Reserve()
		if err != nil {
			return nil, err
		}
		ports[name], e.reserved = port, append(e.reserved, hold)
	}
	if err := e.makeIdentities(ports[apiserverName], time.Now()); err != nil {
		return nil, err
	}
	for _, p := range e.programs(ports) {
		p.argv = append(append([]string{filepath.Join(c.BinDir, p.name)}, p.argv...), c.Flags[p.name]...)
		if err := e.processes.start(p, e.dir); err != nil {
			return nil, err
		}
	}
	if err := e.waitReady(ctx, ports); err != nil {
		return nil, err
	}
	return e, e.snapshot(ctx, started)
}

// Open returns the environment in dir, which another process has started; Stop is that one's to call.
func Open(dir string) (*Environment, error) {
	e := &Environment{dir: dir}
	_, err := os.Stat(e.snapshotPath(started))
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("no environment is ready in %s", dir)
	}
	return e, err
}

// Stop ends the processes and removes the directory.
func (e *Environment) Stop() error {
	e.processes.stop()
	for _, socket := range e.reserved {
		socket.Close()
	}
	return os.RemoveAll(e.dir)
}

// KubeconfigPath is a file with which clients are administrators.
func (e *Environment) KubeconfigPath() string { return e.at("admin.conf") }

// Client is the configuration of a client that is administrator and does not limit its own rate.
func (e *Environment) Client() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", e.KubeconfigPath())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

func (e *Environment) at(name string) string { return filepath.Join(e.dir, name) }

// programs are what runs, each with its flags. All start at once: each waits for what it needs.
func (e *Environment) programs(ports map[string]int) []program {
	const etcdURL, peerURL = "unix://client:0", "unix://peer:0" // sockets of these names in the working directory
	listen := func(name string) []string {
		return []string{"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(ports[name]),
			"--permit-port-sharing", "--tls-cert-file=" + e.at("server.crt"),
			"--tls-private-key-file=" + e.at("server.key")}
	}
	of := func(kubeconfig string) []string {
		path := e.at(kubeconfig + ".conf")
		return []string{"--kubeconfig=" + path, "--authentication-kubeconfig=" + path,
			"--authorization-kubeconfig=" + path, "--leader-elect=false"}
	}
	return []program{
		{name: etcdName, argv: []string{"--name=testenv", "--data-dir=etcd", "--log-level=warn",
			"--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
			"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL,
			"--initial-cluster=testenv=" + peerURL,
			// What it keeps is of no use after the machine's end, and it is its own majority.
			"--unsafe-no-fsync", "--heartbeat-interval=20", "--election-timeout=100",
			"--max-txn-ops=" + strconv.Itoa(mostOps), "--max-request-bytes=" + strconv.Itoa(mostBytes)}},
		{name: apiserverName, argv: append(listen(apiserverName), "--etcd-servers=unix://"+e.at("client:0"),
			"--advertise-address="+loopback, "--endpoint-reconciler-type=none", // loopback can be no endpoint
			"--client-ca-file="+e.at("ca.crt"), "--authorization-mode=Node,RBAC",
			"--service-cluster-ip-range="+serviceNetwork,
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file="+e.at("sa.key"), "--service-account-signing-key-file="+e.at("sa.key"),
			"--enable-bootstrap-token-auth")},
		{name: controllerManagerName, argv: append(append(listen(controllerManagerName), of("controller-manager")...),
			"--use-service-account-credentials", "--service-account-private-key-file="+e.at("sa.key"),
			"--root-ca-file="+e.at("ca.crt"),
			"--cluster-signing-cert-file="+e.at("ca.crt"), "--cluster-signing-key-file="+e.at("ca.key"),
			"--service-cluster-ip-range="+serviceNetwork)},
		{name: schedulerName, argv: append(listen(schedulerName), of("scheduler")...)},
	}
}

// serviceNetwork is what Services get their addresses from; nothing leads there.
const serviceNetwork = "10.0.0.0/16"
