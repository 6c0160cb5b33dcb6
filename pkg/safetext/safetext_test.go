package safetext

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"no agent available", "no agent available"},
		{"two\r\nlines\tand more", "two  lines and more"},
		{"\x1b[31mred\x00\u202e\xff", "[31mred"},
		{strings.Repeat("x", MaxText), strings.Repeat("x", MaxText)},
		{strings.Repeat("x", 1<<20), strings.Repeat("x", MaxText) + "…"},
		{strings.Repeat("x", MaxText-1) + "ää", strings.Repeat("x", MaxText-1) + "…"},
	} {
		got := Text(c.text)
		if got != c.want {
			t.Errorf("Text(%.80q) is %q, want %q", c.text, got, c.want)
		}
		if !utf8.ValidString(got) {
			t.Errorf("%q is no UTF-8", got)
		}
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	if Error(nil) != nil || Status(nil) != nil {
		t.Error("no error becomes one")
	}
	if plain := errors.New("plain"); Error(plain) != plain { //nolint:errorlint // the same one
		t.Error("a harmless error is another one")
	}
	err := Error(fmt.Errorf("%s\x1b[2J: %w", strings.Repeat("x", 1<<20), io.EOF))
	if !errors.Is(err, io.EOF) {
		t.Error("errors.Is does not find the cause")
	}
	if n := len(err.Error()); n > MaxError+len(more) {
		t.Errorf("the text has %d bytes", n)
	}
	if got := Error(errors.New("a\nb\x1b[2J")).Error(); got != "a b[2J" {
		t.Errorf("got %q", got)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	if Status(context.Canceled) != context.Canceled { //nolint:errorlint // the same one
		t.Error("an error of another kind is changed")
	}
	for name, c := range map[string]struct {
		in   error
		want codes.Code
	}{
		"known":   {status.Error(codes.Unavailable, "gone"), codes.Unavailable},
		"long":    {status.Error(codes.Internal, strings.Repeat("x\x1b", 1<<20)), codes.Internal},
		"unknown": {status.Error(codes.Code(12345), "x"), codes.Unknown},
	} {
		got := Status(c.in)
		if code, ok := CodeOf(got); code != c.want || !ok {
			t.Errorf("%s: the code is %v, %v", name, code, ok)
		}
		if text := got.Error(); len(text) > MaxError+100 || strings.Contains(text, "\x1b") {
			t.Errorf("%s: the text is %.80q of %d bytes", name, text, len(text))
		}
	}
	if code, _ := CodeOf(fmt.Errorf("x: %w", status.Error(codes.Code(99), "x"))); code != codes.Unknown {
		t.Errorf("a wrapped code is %v", code)
	}
}

// TestURL: no password is shown, whatever the URL.
func TestURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                                  "",
		"https://host:1/path@v1":            "https://host:1/path@v1",
		"https://user@host":                 "https://user@host",
		"https://user:secret@host/":         "https://user:xxxxx@host/",
		"user:secret@host:1":                "xxxxx@host:1",
		"//user:secret@host:1":              "//user:xxxxx@host:1",
		"http://user:sec%ret@host":          "http://xxxxx@host",
		"http://user:sec/ret@host":          "http://xxxxx@host",
		"http://user:sec?ret@host":          "http://xxxxx@host",
		"http://user:sec@ret@host":          "http://user:xxxxx@host",
		"http://user:secret@host:port":      "http://xxxxx@host:port",
		"http:user:secret@host":             "xxxxx@host",
		"http://user:secret@host\x00\x1b[m": "http://xxxxx@host\x00\x1b[m",
		"a b":                               "a b",
	} {
		if got := URL(raw); got != want {
			t.Errorf("URL(%q) is %q, want %q", raw, got, want)
		}
		_, err := ParseURL(raw)
		_, raised := url.Parse(raw)
		for _, err := range []error{err, URLError(raised), URLError(fmt.Errorf("x: %w", raised)),
			URLError(fmt.Errorf("x %q: %v", raw, raised))} { //nolint:errorlint // as client-go words it
			if raised == nil || !strings.Contains(raw, "://") {
				continue
			}
			if err == nil || strings.Contains(err.Error(), "sec") || strings.Contains(err.Error(), "ret") {
				t.Errorf("the error for %q is %v", raw, err)
			}
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                               "",
		"a@b: c":                         "a@b: c",
		"http://a:1,http://u:secret@b:2": "http://a:1,http://u:xxxxx@b:2",
		"[https://u:se,cr;et@a https://v:secret@b]":    "[https://u:xxxxx@a https://v:xxxxx@b]",
		`parse "http://u:se/cret@h": x`:                `parse "http://u:xxxxx@h": x`,
		"apps/v1#http://u:secret@b;http://u:secret@c":  "apps/v1#http://u:xxxxx@b;http://u:xxxxx@c",
		"https://host:443/path@v1 and https://u@h":     "https://host:443/path@v1 and https://u@h",
		"https://host:443?user=a:b@c":                  "https://host:443?user=a:b@c",
		"socks5://u:secret@h/?a=b:c@d":                 "socks5://u:xxxxx@h/?a=b:c@d",
		"[https://u:it's@a 'https://v:secret@b/' c@d]": "[https://u:xxxxx@a 'https://v:xxxxx@b/' c@d]",
		"get 'https://host:443': ask a@b":              "get 'https://host:443': ask a@b",
		"unix:///var/run/x.sock":                       "unix:///var/run/x.sock",
		"https://u:secret@host:443/path@v1?token=here": "https://u:xxxxx@host:443/path@v1?token=here",
	} {
		if got := URLs(text); got != want {
			t.Errorf("URLs(%q) is %q, want %q", text, got, want)
		}
	}
	if URLError(nil) != nil || URLError(io.EOF) != io.EOF { //nolint:errorlint // the same one
		t.Error("URLError changes an error without a password")
	}
}
