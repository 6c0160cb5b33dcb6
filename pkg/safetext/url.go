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
		if _, has := u.User.Password(); has {
			return u.Redacted()
		}
		return raw
	}
	at := strings.LastIndexByte(raw, '@')
	if at < 0 {
		return raw
	}
	from := 0
	if scheme := strings.Index(raw[:at], "//"); scheme >= 0 {
		from = scheme + len("//")
	}
	return raw[:from] + hidden + raw[at:]
}

// URLs returns a text, such as a list of URLs, without the passwords of the URLs in it.
func URLs(text string) string {
	clean, _ := redact(text)
	return clean
}

// redact is URLs. It also returns where the last URL with a password ends in the result; 0: there is none.
func redact(text string) (clean string, end int) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "://")
		out.WriteString(before)
		if !found {
			return out.String(), end
		}
		out.WriteString("://")
		place := rest // up to the next URL, whatever separates them
		if n := strings.Index(rest, "://"); n >= 0 {
			place = rest[:n]
		}
		if n := strings.IndexAny(place, " \t\r\n\"`<>"); n >= 0 { // a password may have an apostrophe
			place = place[:n]
		}
		at := userEnd(place)
		text = rest
		if user, _, ok := strings.Cut(place[:at], ":"); ok {
			out.WriteString(user + ":" + hidden + place[at:])
			end, text = out.Len(), rest[len(place):]
		}
	}
}

// userEnd returns where the user and the password of a URL without its scheme end, at an @; 0: it has none. In one that
// cannot be parsed, all up to the last @ may be a password.
func userEnd(place string) int {
	authority := place
	if n := strings.IndexAny(place, "/?#"); n >= 0 {
		authority = place[:n]
	}
	if _, err := url.Parse("//" + authority); err != nil {
		authority = place
	}
	return max(strings.LastIndexByte(authority, '@'), 0)
}

// ParseURL is url.Parse whose error does not show a password.
func ParseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil && strings.Contains(raw, "@") {
		err = errors.New("parse " + URL(raw) + ": its user, password, host or port is invalid")
	}
	return u, err
}

// URLError returns an error about a URL, such as one of url.Parse, without the URL's password. What follows such a URL
// is left out: a piece of a password may look like a port, and the error repeats it. The result wraps nothing, because
// the cause has the password.
func URLError(err error) error {
	if err == nil {
		return nil
	}
	var parse *url.Error
	if errors.As(err, &parse) && parse.Op == "parse" && strings.Contains(parse.URL, "@") {
		before, _, _ := strings.Cut(err.Error(), parse.Error())
		_, why := ParseURL(parse.URL)
		if why == nil {
			why = errors.New("it is invalid")
		}
		return errors.New(URLs(before) + why.Error())
	}
	clean, end := redact(err.Error())
	if end == 0 {
		return err
	}
	return errors.New(clean[:end] + " is invalid")
}
