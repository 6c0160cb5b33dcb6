package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// zeros is an answer of so many bytes, which nobody holds.
type zeros int64

func (z *zeros) Read(p []byte) (int, error) {
	if *z == 0 {
		return 0, io.EOF
	}
	n := min(int64(*z), int64(len(p)))
	clear(p[:n])
	*z -= zeros(n)
	return int(n), nil
}

// TestAnswerIsBounded: an answer over the bound is refused or breaks off, and one without an end goes on.
func TestAnswerIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var size zeros
		fmt.Sscan(r.URL.Query().Get("size"), (*int64)(&size))
		if r.URL.Query().Has("told") {
			w.Header().Set("Content-Length", fmt.Sprint(int64(size)))
		}
		io.Copy(w, &size)
	}))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = host
		f.ServeHTTP(w, r)
	}))
	defer s.Close()
	for _, c := range []struct {
		query string
		code  int
		whole bool
	}{
		{fmt.Sprintf("size=%d", maxAnswer), 200, true},
		{fmt.Sprintf("size=%d&told", maxAnswer), 200, true},
		{fmt.Sprintf("size=%d", maxAnswer+1), 200, false},
		{fmt.Sprintf("size=%d&told", maxAnswer+1), 502, true},
		{fmt.Sprintf("size=%d&watch=false", maxAnswer+1), 200, false},
		{fmt.Sprintf("size=%d&watch=1", maxAnswer+1), 200, true},
		{fmt.Sprintf("size=%d&follow=true", maxAnswer+1), 200, true},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/pods?"+c.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode != c.code || (err == nil) != c.whole || c.code == 200 && !c.whole && n > maxAnswer {
			t.Errorf("%s: %d, %d bytes, %v", c.query, response.StatusCode, n, err)
		}
	}
}

// TestLines: lines of any length up to the bound come whole, however they are read; a longer one ends the watch.
func TestLines(t *testing.T) {
	t.Parallel()
	var want []string
	for _, n := range []int{0, 1, shortLine - 1, shortLine, shortLine + 1, 3*shortLine + 7, maxLine - 1} {
		want = append(want, strings.Repeat("x", n))
	}
	want = append(want, "the last, without an end")
	text := strings.Join(want, "\n")
	for name, from := range map[string]io.Reader{"as it comes": strings.NewReader(text),
		"in halves": iotest.HalfReader(strings.NewReader(text))} {
		l := newLineReader(from, make(chan struct{}, 1))
		var got []string
		err := error(nil)
		for err == nil {
			err = l.next(t.Context(), func(line []byte) error {
				got = append(got, string(line))
				return nil
			})
		}
		if !errors.Is(err, io.EOF) || len(got) != len(want) {
			t.Fatalf("%s: %d lines, %v", name, len(got), err)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: line %d has %d bytes, not %d", name, i, len(got[i]), len(want[i]))
			}
		}
	}
	l := newLineReader(bytes.NewReader(make([]byte, maxLine+2)), make(chan struct{}, 1))
	if err := l.next(t.Context(), func([]byte) error { return nil }); !errors.Is(err, errLongLine) {
		t.Error(err)
	}
}

// TestLongLinesWait: no more long lines are held at once than the bound says, and a watch that waits ends with its
// page.
func TestLongLinesWait(t *testing.T) {
	t.Parallel()
	long := make(chan struct{}, 1)
	held := newLineReader(strings.NewReader(strings.Repeat("x", 2*shortLine)), long)
	other := newLineReader(strings.NewReader(strings.Repeat("x", 2*shortLine)), long)
	ctx, cancel := context.WithCancel(t.Context())
	err := held.next(t.Context(), func([]byte) error {
		ended := make(chan error)
		go func() { ended <- other.next(ctx, func([]byte) error { return nil }) }()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a second long line: %v", err)
		}
		return nil
	})
	if err != nil || len(long) != 0 {
		t.Error(err, len(long))
	}
}
