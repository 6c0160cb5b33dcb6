package slowclient

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestStalledClientIsCutOff: who does not read loses the stream, over either protocol, while one that is only quiet
// goes on.
func TestStalledClientIsCutOff(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", protocol), func(t *testing.T) {
			t.Parallel()
			cut := make(chan error, 1)
			mux := http.NewServeMux()
			mux.HandleFunc("/stalled", func(w http.ResponseWriter, _ *http.Request) {
				s := Stream(w, 100*time.Millisecond)
				defer s.End()
				for {
					if _, err := s.Write(make([]byte, 1<<20)); err != nil {
						cut <- err
						return
					}
				}
			})
			mux.HandleFunc("/quiet", func(w http.ResponseWriter, r *http.Request) {
				s := Stream(w, 100*time.Millisecond)
				defer s.End()
				s.Flush()
				select {
				case err := <-cut: // so more than the patience has passed
					fmt.Fprint(s, "still here ", err != nil)
				case <-r.Context().Done():
				}
			})
			server := httptest.NewUnstartedServer(mux)
			server.EnableHTTP2 = protocol == 2
			server.StartTLS()
			t.Cleanup(server.Close)
			quiet, err := server.Client().Get(server.URL + "/quiet")
			if err != nil {
				t.Fatal(err)
			}
			defer quiet.Body.Close()
			stalled, err := server.Client().Get(server.URL + "/stalled")
			if err != nil {
				t.Fatal(err)
			}
			defer stalled.Body.Close()
			if stalled.ProtoMajor != protocol {
				t.Fatalf("HTTP/%d is spoken", stalled.ProtoMajor)
			}
			if b, err := io.ReadAll(quiet.Body); err != nil || string(b) != "still here true" {
				t.Errorf("the quiet stream: %q, %v", b, err)
			}
		})
	}
}

// TestStalledConnectionIsCutOff: the same for a connection that was taken over, as exec and port-forward do.
func TestStalledConnectionIsCutOff(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s := Stream(w, 100*time.Millisecond)
		defer s.End()
		c, rw, err := s.Hijack()
		if err != nil {
			ended <- err
			return
		}
		defer c.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
		if err := rw.Flush(); err != nil {
			ended <- err
			return
		}
		if b := make([]byte, 1); read(c, b) != nil || b[0] != 'x' {
			ended <- errors.New("the client's byte did not come")
			return
		}
		for err == nil {
			_, err = c.Write(make([]byte, 1<<20))
		}
		ended <- err
	}))
	t.Cleanup(server.Close)
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", resp, err)
	}
	fmt.Fprint(c, "x")
	var timeout net.Error
	if err := <-ended; !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("ended with %v, want a timeout", err)
	}
}

func read(c net.Conn, b []byte) error {
	_, err := io.ReadFull(c, b)
	return err
}

// discard is an answer that costs nothing.
type discard struct{ http.ResponseWriter }

func (discard) Header() http.Header              { return nil }
func (discard) Write(b []byte) (int, error)      { return len(b), nil }
func (discard) FlushError() error                { return nil }
func (discard) SetReadDeadline(time.Time) error  { return nil }
func (discard) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkEvent is what the patience adds to an event of a watch: one small write and a flush.
func BenchmarkEvent(b *testing.B) {
	s := Stream(discard{}, time.Minute)
	defer s.End()
	event := make([]byte, 1000)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			_, _ = s.Write(event)
			s.Flush()
		}
	})
}
