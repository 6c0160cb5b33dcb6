package apiserver_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/apiserver"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/health"
)

// TestRetryLater: the server that is about to go refuses new requests as Kubernetes' does with
// --shutdown-send-retry-after, until it has answered those under way; health and metrics answer all the time.
func TestRetryLater(t *testing.T) {
	t.Parallel()
	s := slow{make(chan struct{}), make(chan struct{})}
	code := make(chan int, 1)
	var url string
	checked := make(chan struct{})
	t.Run("server", func(t *testing.T) {
		url = start(t, func(c *assemble.Config) {
			c.Parts.Paths["/slow"] = s
			c.HTTP.SendRetryAfter = true
		})
		go func() {
			defer close(code)
			if answer, err := plain("admin").Get(url + "/slow"); err == nil {
				answer.Body.Close() //nolint:errcheck // only the code counts
				code <- answer.StatusCode
			}
		}()
		<-s.came
		go func() {
			defer close(checked)
			defer close(s.release)
			var refusal *http.Response
			until(t, func() (bool, string) {
				answer, err := plain("").Get(url + "/api/v1/pods") // before anybody is authenticated
				if err != nil {
					return false, err.Error()
				}
				refusal = answer
				return answer.StatusCode == http.StatusTooManyRequests, answer.Status
			})
			body, _ := io.ReadAll(refusal.Body)
			refusal.Body.Close()
			if string(body) != "The apiserver is shutting down, please try again later.\n" ||
				refusal.Header.Get("Retry-After") != "5" || refusal.Header.Get("Audit-Id") == "" {
				t.Errorf("refused with %q, %v", body, refusal.Header)
			}
			for path, want := range map[string]int{"/readyz": 500, "/livez": 200, "/healthz": 200, "/metrics": 200,
				"/version": 429, "/api/v1/pods?watch=1": 429} {
				answer, err := plain("admin").Get(url + path)
				if err != nil {
					t.Errorf("%s: %v", path, err)
					continue
				}
				answer.Body.Close()
				if answer.StatusCode != want {
					t.Errorf("%s: %d, want %d", path, answer.StatusCode, want)
				}
			}
		}()
	})
	<-checked
	if got := <-code; got != http.StatusOK {
		t.Errorf("the request under way was answered %d", got)
	}
}

// TestWatchesEndOneByOne: with a grace period the watches end over all of it, and the server waits for them.
func TestWatchesEndOneByOne(t *testing.T) {
	t.Parallel()
	const grace, watches = 600 * time.Millisecond, 3
	ended := make(chan time.Time, watches)
	var stop time.Time
	t.Run("server", func(t *testing.T) {
		url := start(t, func(c *assemble.Config) { c.HTTP.WatchGrace = grace })
		for range watches {
			watch, err := plain("admin").Get(url + "/api/v1/pods?watch=1")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, err := io.Copy(io.Discard, watch.Body)
				if err != nil {
					t.Errorf("a watch ended with %v", err)
				}
				ended <- time.Now()
			}()
		}
		stop = time.Now()
	})
	first := <-ended
	<-ended
	last := <-ended
	if between := last.Sub(first); between < grace/3 {
		t.Errorf("the first and the last ended within %v of each other", between)
	}
	if last.Sub(stop) > grace+5*time.Second {
		t.Errorf("the last ended after %v", last.Sub(stop))
	}
}

// TestBrowsers: the headers are those that a real kube-apiserver v1.36.3 answered with.
func TestBrowsers(t *testing.T) {
	t.Parallel()
	origins, err := apiserver.CompileOrigins([]string{`//example\.com(:|$)`, `^https://foo\.org$`})
	if err != nil {
		t.Fatal(err)
	}
	url := start(t, func(c *assemble.Config) {
		c.HTTP.Origins, c.HTTP.StrictTransport = origins, "max-age=31536000; includeSubDomains"
	})
	for _, c := range []struct {
		method, user, origin string
		code                 int
		allowed              bool
	}{
		{"GET", "admin", "https://example.com", 200, true},
		{"GET", "admin", "https://example.com:8443", 200, true},
		{"GET", "admin", "https://example.com.evil.net", 200, false},
		{"GET", "admin", "https://evil.net/https://foo.org", 200, false},
		{"GET", "admin", "", 200, false},
		{"GET", "", "https://foo.org", 401, true},
		{"GET", "bob", "https://foo.org", 403, true},
		{"OPTIONS", "", "https://foo.org", 204, true},
		{"OPTIONS", "", "https://evil.net", 401, false},
		{"OPTIONS", "admin", "", 405, false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, url+"/api/v1/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		resp, err := plain(c.user).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		want := map[string]string{"Strict-Transport-Security": "max-age=31536000; includeSubDomains"}
		for _, name := range []string{"Origin", "Methods", "Headers", "Credentials"} {
			want["Access-Control-Allow-"+name] = ""
		}
		if c.allowed {
			want["Access-Control-Allow-Origin"] = c.origin
			want["Access-Control-Allow-Methods"] = "POST, GET, OPTIONS, PUT, DELETE, PATCH"
			want["Access-Control-Allow-Headers"] = "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since"
			want["Access-Control-Allow-Credentials"] = "true"
			want["Access-Control-Expose-Headers"] = "Date"
		}
		for name, value := range want {
			if got := resp.Header.Get(name); got != value {
				t.Errorf("%s by %q from %q: %s: %q, want %q", c.method, c.user, c.origin, name, got, value)
			}
		}
		if resp.StatusCode != c.code {
			t.Errorf("%s by %q from %q: %d, want %d", c.method, c.user, c.origin, resp.StatusCode, c.code)
		}
	}
}

// TestOriginsNameWholeHosts: the verdicts are those of a real kube-apiserver v1.36.3.
func TestOriginsNameWholeHosts(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"x^example.com$": "", "//x:": "", "(^a|b)$": "", "$^": "", "https://example.com": "", "^a$|b": "",
		`//example\.com(:|$)`: "", "//example.com": "does not pin", "^example.com": "does not pin",
		"example.com$": "does not pin", "//": "does not pin", "^": "does not pin", " ": "does not pin",
		"[": "error parsing regexp: missing closing ]: `[`",
	} {
		_, err := apiserver.CompileOrigins([]string{expression})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", expression, err, want)
		}
	}
}

// TestLivezGrace: /livez takes it that the start will succeed for a time; /healthz and /readyz do not.
func TestLivezGrace(t *testing.T) {
	t.Parallel()
	for grace, want := range map[time.Duration]int{0: 500, time.Hour: 200, time.Nanosecond: 500} {
		url := start(t, func(c *assemble.Config) {
			c.HTTP.LivezGrace = grace
			c.HTTP.Started = []health.Check{{Name: "never",
				Run: func(*http.Request) error { return errors.New("not yet") }}}
		})
		for path, want := range map[string]int{"/livez": want, "/livez/never": want, "/healthz/never": 500,
			"/readyz/never": 500} {
			until(t, func() (bool, string) { // other checks of the start pass a little later
				code, _, body := call(t, "GET", url+path, "")
				return code == want, body
			})
		}
	}
}
