package apiserver_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/apiserver/assemble"
)

// dial opens a raw connection to the server and sends text on it.
func dial(t *testing.T, host, text string) net.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", strings.TrimPrefix(host, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := fmt.Fprint(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

const maps = "/api/v1/namespaces/ns/configmaps"

// begun is a POST that announces a body and sends a byte of it.
func begun(user string) string {
	return "POST " + maps + " HTTP/1.1\r\nHost: x\r\nTest-User: " + user +
		"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
}

// TestSlowSendersHoldNoTurn: bodies that never come keep nobody from writing, and those of callers who may not write,
// or whom nobody knows, are not even waited for.
func TestSlowSendersHoldNoTurn(t *testing.T) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		testSlowSenders(t, start(t, func(c *assemble.Config) { c.HTTP.MaxMutating = 2 }))
	})
	t.Run("fair", func(t *testing.T) { testSlowSenders(t, start(t, fairly(t, 2))) })
}

func testSlowSenders(t *testing.T, host string) {
	for range 10 {
		dial(t, host, begun("admin"))
	}
	for user, want := range map[string]int{"eve": http.StatusForbidden, "": http.StatusUnauthorized} {
		c := dial(t, host, begun(user))
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%q: %v", user, err)
		}
		resp.Body.Close()
		if resp.StatusCode != want || !resp.Close {
			t.Errorf("%q: %s, close %v; want %d and the connection closed", user, resp.Status, resp.Close, want)
		}
	}
	if code, _, body := call(t, "POST", host+maps, `{"metadata":{"name":"a"}}`, "Content-Type",
		"application/json"); code != http.StatusCreated {
		t.Errorf("a write beside slow senders: %d %s", code, body)
	}
}

// TestSlowReadersHoldNoTurn: answers that nobody reads keep nobody from reading.
func TestSlowReadersHoldNoTurn(t *testing.T) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		testSlowReaders(t, start(t, func(c *assemble.Config) { c.HTTP.MaxReading = 2 }))
	})
	t.Run("fair", func(t *testing.T) { testSlowReaders(t, start(t, fairly(t, 2))) })
}

func testSlowReaders(t *testing.T, host string) {
	for i := range 12 { // more than the buffers of a connection take
		body := fmt.Sprintf(`{"metadata":{"name":"m%d"},"data":{"k":%q}}`, i, strings.Repeat("x", 1<<20))
		if code, _, body := call(t, "POST", host+maps, body, "Content-Type",
			"application/json"); code != http.StatusCreated {
			t.Fatalf("%d %s", code, body)
		}
	}
	for _, query := range []string{"", "?pretty=true"} {
		for range 5 {
			c := dial(t, host, "GET "+maps+query+" HTTP/1.1\r\nHost: x\r\nTest-User: admin\r\n\r\n")
			if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if b, err := bufio.NewReaderSize(c, 16).ReadString('\n'); err != nil ||
				!strings.Contains(b, " 200 ") && !strings.Contains(b, " 429 ") {
				t.Fatalf("%s %v", b, err)
			}
		}
		if code, _, body := call(t, "GET", host+maps+"/m0", ""); code != http.StatusOK {
			t.Errorf("a read beside slow readers: %d %.200s", code, body)
		}
	}
}

// TestStalledRequestEnds: a request whose body does not come, and an answer that is not read, end with the request's
// time.
func TestStalledRequestEnds(t *testing.T) {
	t.Parallel()
	host := start(t, func(c *assemble.Config) { c.HTTP.RequestTimeout = time.Millisecond })
	c := dial(t, host, begun("admin"))
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for b := make([]byte, 1<<10); ; {
		if _, err := c.Read(b); err != nil {
			if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
				t.Error("the connection is still open")
			}
			return
		}
	}
}
