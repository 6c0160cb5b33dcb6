package credentialprovider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	kubeletconfig "k8s.io/kubelet/config/v1"
	credentialv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// The limits of a program: runTimeout in all, maxAnswer bytes on its standard output, and maxComplaint bytes of its
// standard error that go to the log.
const (
	runTimeout   = time.Minute
	maxAnswer    = 1 << 20
	maxComplaint = 4 << 10
)

// errTooLong: a program writes more than it may.
var errTooLong = errors.New("the answer is longer than 1 MiB")

// execute runs a provider's program with a request.
func execute(ctx context.Context, path string, p *kubeletconfig.CredentialProvider,
	req *credentialv1.CredentialProviderRequest) (*credentialv1.CredentialProviderResponse, error) {
	req.APIVersion, req.Kind = p.APIVersion, "CredentialProviderRequest"
	input, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	out, complaint := &bounded{most: maxAnswer, full: cancel}, &bounded{most: maxComplaint}
	cmd := exec.Command(path, p.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), out, complaint
	cmd.Env = os.Environ()
	for _, v := range p.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.WaitDelay = time.Second // a child that keeps the program's output open does not delay the pull
	err = runGroup(ctx, cmd)
	switch {
	case out.over:
		return nil, errTooLong
	case ctx.Err() != nil:
		return nil, fmt.Errorf("no answer: %w", ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("%w, stderr: %s", err, complaint.buf.Bytes())
	}
	answer := &credentialv1.CredentialProviderResponse{}
	if json.Unmarshal(out.buf.Bytes(), answer) != nil {
		return nil, errors.New("the answer is not valid JSON") // the cause could quote a password
	}
	if answer.APIVersion != p.APIVersion || answer.Kind != "CredentialProviderResponse" {
		return nil, fmt.Errorf("apiVersion from credential plugin response did not match expected apiVersion:%s, actual apiVersion:%s", p.APIVersion, answer.APIVersion)
	}
	switch answer.CacheKeyType {
	case credentialv1.ImagePluginCacheKeyType, credentialv1.RegistryPluginCacheKeyType,
		credentialv1.GlobalPluginCacheKeyType:
		return answer, nil
	}
	return nil, fmt.Errorf("credential provider plugin did not return a valid cacheKeyType: %q", answer.CacheKeyType)
}

// runGroup runs a program in a process group of its own, and kills the group when ctx ends: the program's children end
// with it. The Cancel of exec.Cmd could do so after the program has been reaped, when the number of the group may be
// another's. Here the program is reaped only when nobody will signal its group any more.
func runGroup(ctx context.Context, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	killed := make(chan struct{})
	keep := context.AfterFunc(ctx, func() {
		defer close(killed)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails only if all have ended
	})
	err := awaitEnd(cmd.Process.Pid)
	if err != nil {
		_ = cmd.Process.Kill() // or Wait would have no bound
	}
	if !keep() {
		<-killed
	}
	return errors.Join(err, cmd.Wait())
}

// awaitEnd waits until a child has ended, and leaves it for Wait.
func awaitEnd(pid int) error {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return err
		}
	}
}

// bounded keeps the first bytes of what is written. The rest is lost, and full is called.
type bounded struct {
	buf  bytes.Buffer
	most int
	over bool
	full func()
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	fits := min(len(p), b.most-b.buf.Len())
	b.buf.Write(p[:fits])
	if fits < len(p) && !b.over {
		b.over = true
		if b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}
