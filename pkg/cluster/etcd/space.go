package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/plan"
)

// API calls one etcd through its JSON gateway. So this command needs no client library of etcd, which only the API
// server has.
type API struct {
	name, url string
	client    *http.Client
}

// Status is what an etcd reports about itself. Its gateway writes 64-bit numbers as strings.
type Status struct {
	Header struct {
		Revision int64 `json:",string"`
	}
	DBSize      int64    `json:"dbSize,string"`
	DBSizeInUse int64    `json:"dbSizeInUse,string"`
	Errors      []string `json:"errors"`
}

// maxEtcdAnswer bounds an answer of etcd about itself, in bytes. maxEtcdValues bounds one with values: pageSize of
// them, each of at most 1.5 MiB unless the user gives etcd another bound, in base64.
const (
	maxEtcdAnswer = 1 << 20
	maxEtcdValues = pageSize << 22
)

// call posts in to a path of etcd's API and reads its answer into out, unless that is nil. Only ctx bounds it: to
// rewrite a large file takes etcd long.
func (e API) call(ctx context.Context, path string, in, out any) error {
	return e.callFor(ctx, path, in, out, maxEtcdAnswer)
}

// callFor is call for an answer of at most that many bytes.
func (e API) callFor(ctx context.Context, path string, in, out any, most int64) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := e.client.Do(r)
	if err != nil {
		return fmt.Errorf("ask %s: %w", e.name, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return fmt.Errorf("ask %s: %w", e.name, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s refuses %s: %s: %s", e.name, path, resp.Status, bytes.TrimSpace(answer))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

// status asks for the state of etcd's file.
func (e API) status(ctx context.Context) (s Status, err error) {
	return s, e.call(ctx, "/v3/maintenance/status", struct{}{}, &s)
}

// isFull reports whether an etcd has raised the alarm NOSPACE: then it accepts no writes until the alarm is disarmed.
// The status has its alarms only as texts.
func (s Status) isFull() bool {
	for _, e := range s.Errors {
		if strings.Contains(e, "NOSPACE") {
			return true
		}
	}
	return false
}

// Of returns the etcds of the cluster's control planes.
func Of(c plan.Config) ([]API, error) {
	var all []API
	for _, m := range c.Members() {
		t, err := transport(c, m)
		if err != nil {
			return nil, err
		}
		// One of several etcds listens on the loopback of its control plane's network namespace, which the host does
		// not reach.
		if m.Number != 0 {
			t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				return dialIn(ctx, m.Namespace(), network, addr)
			}
		}
		all = append(all, API{name: m.Of("etcd"), url: fmt.Sprintf("https://%s:%d", m.Local, c.Ports.EtcdClient),
			client: &http.Client{Transport: t}})
	}
	return all, nil
}

// transport returns the transport with which a member's API server asks etcd.
func transport(c plan.Config, m plan.Member) (*http.Transport, error) {
	l := c.Layout()
	pem, err := os.ReadFile(l.PKI("etcd-ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	own := m.Of("apiserver-etcd-client")
	pair, err := tls.LoadX509KeyPair(l.PKI(own+".crt"), l.PKI(own+".key"))
	if err != nil {
		return nil, err
	}
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair},
		MinVersion: tls.VersionTLS12}}, nil
}

// dialIn connects from a network namespace of the host. A socket stays in the namespace in which it was made. The
// thread that entered the namespace must not serve another goroutine afterwards, so it ends with this one.
func dialIn(ctx context.Context, namespace, network, addr string) (net.Conn, error) {
	type dialed struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialed, 1)
	go func() {
		runtime.LockOSThread() // and never unlock it
		ns, err := os.Open(plan.NetnsDir + namespace)
		if err == nil {
			defer ns.Close()
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			done <- dialed{nil, fmt.Errorf("enter the network %s: %w", namespace, err)}
			return
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		done <- dialed{conn, err}
	}()
	d := <-done
	return d.conn, d.err
}

// Defragment drops the history of all objects, without which a file does not get smaller. Then it rewrites the file of
// one etcd after the other, since an etcd does not answer meanwhile. At last it disarms the alarm NOSPACE.
func Defragment(ctx context.Context, etcds []API, out io.Writer) error {
	for i, e := range etcds {
		before, err := e.status(ctx)
		if err != nil {
			return err
		}
		// One compaction is for all members; it goes through their log.
		if i == 0 {
			compact := map[string]any{"revision": before.Header.Revision, "physical": true}
			if err := e.call(ctx, "/v3/kv/compaction", compact, nil); err != nil &&
				!strings.Contains(err.Error(), "has been compacted") {
				return err
			}
		}
		if err := e.call(ctx, "/v3/maintenance/defragment", struct{}{}, nil); err != nil {
			return err
		}
		after, err := e.status(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d MiB before, %d MiB now\n", e.name, before.DBSize>>20, after.DBSize>>20)
	}
	return disarm(ctx, etcds, out)
}

// disarm ends the alarms NOSPACE. An etcd that is still full raises the alarm again with the next write.
func disarm(ctx context.Context, etcds []API, out io.Writer) error {
	if len(etcds) == 0 {
		return errors.New("there is no etcd")
	}
	const path = "/v3/maintenance/alarm"
	var raised struct {
		Alarms []struct{ MemberID, Alarm string }
	}
	first := etcds[0]
	if err := first.call(ctx, path, map[string]string{"action": "GET"}, &raised); err != nil {
		return err
	}
	for _, a := range raised.Alarms {
		if a.Alarm != "NOSPACE" {
			fmt.Fprintf(out, "The alarm %s stays: it is not about space.\n", a.Alarm)
			continue
		}
		if err := first.call(ctx, path,
			map[string]string{"action": "DEACTIVATE", "memberID": a.MemberID, "alarm": a.Alarm}, nil); err != nil {
			return err
		}
		fmt.Fprintln(out, "It takes writes again. If it is full soon, delete objects, or give it more room (componentFlags: {etcd: {quota-backend-bytes: …}}).")
	}
	return nil
}

// etcdPatience bounds a look at all etcds.
const etcdPatience = 2 * time.Second

// Full returns an error for each etcd that is full, with what to do.
func Full(ctx context.Context, c plan.Config) (full []error) {
	etcds, err := Of(c)
	if err != nil {
		return nil // without certificates etcd does not run, which other checks report
	}
	ctx, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	for _, e := range etcds {
		if s, err := e.status(ctx); err == nil && s.isFull() {
			full = append(full, fmt.Errorf("%s is full (NOSPACE, %d MiB) and takes no writes: run bonsai defragment",
				e.name, s.DBSize>>20))
		}
	}
	return full
}
