package etcdtest

import (
	"errors"
	"net"
	"strings"
	"testing"
)

// TestTaken: run returns errTaken if another process has taken the port, and another error for any other failure. An
// etcd that was killed starts again on the same ports.
func TestTaken(t *testing.T) {
	t.Parallel()
	s := Start(t)
	s.Kill()
	l, err := net.Listen("tcp", strings.TrimPrefix(s.Endpoint, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.run(); !errors.Is(err, errTaken) {
		t.Errorf("with a taken port: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.Run(t)
	s.Kill()
	s.binary += "-none"
	if err := s.run(); err == nil || errors.Is(err, errTaken) {
		t.Errorf("without the program: %v", err)
	}
}
