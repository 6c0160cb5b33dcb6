package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// proc is a process under measurement.
type proc struct {
	cmd *exec.Cmd
	log string
}

func start(ctx context.Context, log, name string, args ...string) (*proc, error) {
	return startIn(ctx, nil, log, name, args...)
}

// startIn is start with more in the environment: NAME=value.
func startIn(ctx context.Context, env []string, log, name string, args ...string) (*proc, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &proc{cmd: cmd, log: log}, nil
}

// stop ends the process and waits for it.
func (p *proc) stop() {
	if p != nil {
		p.cmd.Process.Signal(syscall.SIGKILL)
		p.cmd.Wait()
	}
}

// tail returns the end of the log, for errors.
func (p *proc) tail() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-1000):])
}

// cpu returns the seconds of CPU that the process has used, by its clock: /proc/PID/stat counts in ticks of 1/100 s.
func (p *proc) cpu() float64 {
	const scheduled = 2 // the kind of clock that the scheduler keeps (CPUCLOCK_SCHED of Linux)
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^p.cmd.Process.Pid)<<3|scheduled, &used); err != nil {
		return 0
	}
	return float64(used.Nano()) / 1e9
}

// memory returns a line of /proc/PID/status ("VmRSS", "VmHWM") in MB.
func (p *proc) memory(line string) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), line+":")
	kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	return kb / 1024
}

// server is a fresh etcd and an API server on it.
type server struct {
	dir       string
	etcd, api *proc
	load      *load
	command   []string // of the API server
	env       []string // more of it for those who work beside the API server
	// ready is the time from exec of the API server to 200 on /readyz.
	ready time.Duration
}

// startServer starts both on free ports of loopback, with one administrator's token.
func startServer(ctx context.Context, s side, flags ...string) (_ *server, err error) {
	dir, err := os.MkdirTemp("", "bonsai-bench-")
	if err != nil {
		return nil, err
	}
	srv := &server{dir: dir}
	defer func() {
		if err != nil {
			srv.stop()
		}
	}()
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	client, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	srv.etcd, err = start(ctx, filepath.Join(dir, "etcd.log"), s.etcd, "--data-dir="+filepath.Join(dir, "etcd"),
		"--log-level=error",
		"--listen-client-urls="+client, "--advertise-client-urls="+client, "--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	if err != nil {
		return nil, err
	}
	if err := healthy(ctx, client+"/health"); err != nil {
		return nil, fmt.Errorf("etcd: %w: %s", err, srv.etcd.tail())
	}
	if err := signingKey(dir); err != nil {
		return nil, err
	}
	token := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(token, []byte("bench,admin,admin,system:masters\n"), 0o600); err != nil {
		return nil, err
	}
	srv.load = newLoad("https://127.0.0.1:"+ports[2], "bench")
	srv.command = append([]string{filepath.Join(s.bin, "kube-apiserver"),
		"--etcd-servers=" + client, "--bind-address=127.0.0.1", "--secure-port=" + ports[2],
		"--cert-dir=" + filepath.Join(dir, "certs"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + filepath.Join(dir, "sa.pub"),
		"--service-account-signing-key-file=" + filepath.Join(dir, "sa.key"), "--token-auth-file=" + token,
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.96.0.0/16", "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"},
		flags...)
	if err := srv.startAPI(ctx); err != nil {
		return nil, err
	}
	return srv, srv.load.namespace(ctx)
}

// startAPI starts the API server, again if it has been stopped.
func (s *server) startAPI(ctx context.Context) (err error) {
	began := time.Now()
	if s.api, err = start(ctx, filepath.Join(s.dir, "apiserver.log"), s.command[0], s.command[1:]...); err != nil {
		return err
	}
	if err := s.load.until(ctx, 3*time.Millisecond, request{method: "GET", path: "/readyz", want: 200}); err != nil {
		return fmt.Errorf("kube-apiserver: %w: %s", err, s.api.tail())
	}
	s.ready = time.Since(began)
	return nil
}

func (s *server) stop() {
	s.api.stop()
	s.etcd.stop()
	os.RemoveAll(s.dir)
}

func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// healthy waits until url answers 200: for etcd, until it has elected itself, which the API server is not to be charged
// with.
func healthy(ctx context.Context, url string) error {
	for range 1000 {
		if resp, err := http.Get(url); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("%s does not become 200", url)
}

// signingKey writes sa.key and sa.pub.
func signingKey(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "sa.key"),
			pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600),
		os.WriteFile(filepath.Join(dir, "sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
			0o600))
}
