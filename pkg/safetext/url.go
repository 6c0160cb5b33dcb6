package safetext

import (
	"errors"
	"net/url"
	"strings"
)

// hidden stands for a password, as in url.URL's Redacted.
const hidden = "xxxxx"

// URL returns a URL without its password, also one that cannot be parsed. There, all that may be a password is hidden.
func URL(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		return u.Redacted()
	}
	at := strings.LastIndexByte(raw, '@')
	if at < 0 {
		return raw
	}
	from := 0
	if scheme := strings.Index(raw[:at], "://"); scheme >= 0 {
		from = scheme + len("://")
	}
	return raw[:from] + hidden + raw[at:]
}

// ParseURL is url.Parse whose error does not repeat a password of the URL.
func ParseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	return u, URLError(err)
}

// URLError returns an error of url.Parse, or one that wraps it, without the password of its URL.
func URLError(err error) error {
	var parse *url.Error
	if !errors.As(err, &parse) || !strings.Contains(parse.URL, "@") {
		return err
	}
	// The cause may repeat a piece: a password with a colon or a slash looks like a port.
	return &url.Error{Op: parse.Op, URL: URL(parse.URL), Err: errors.New("its user, password, host or port is invalid")}
}
