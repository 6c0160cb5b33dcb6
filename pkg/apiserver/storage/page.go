package storage

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
)

// latestRevision in a token stands for "whatever is newest when the page is asked for".
const latestRevision = -1

// token is what List.Continue holds, as base64 of JSON. Clients treat it as opaque. It is not signed, so all that is
// read from it is checked: From refuses a key outside of the prefix, which authorization has let the client list.
type token struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"`
	Start    string `json:"start"` // first key that may be on the page
}

const tokenVersion = "meta.k8s.io/v1"

func (t token) String() string {
	b, _ := json.Marshal(t) // a struct of strings and a number always encodes
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseToken(s string) (token, error) {
	var t token
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	switch {
	case err != nil:
	case t.Version != tokenVersion:
		err = fmt.Errorf("server does not recognize this encoded version %s", t.Version)
	case t.Revision == 0:
		err = fmt.Errorf("incorrect encoded start resourceVersion (version %s)", t.Version)
	case t.Start == "":
		err = fmt.Errorf("encoded start key empty (version %s)", t.Version)
	}
	if err != nil {
		return t, fmt.Errorf("%w: %w", ErrBadContinue, err)
	}
	return t, nil
}

// ContinueToken returns the token for the page after lastKey at revision. A zero byte behind the key gives the smallest
// key that follows it, so the page begins right there even if the object of lastKey has gone.
func ContinueToken(lastKey string, revision int64) string {
	return token{Version: tokenVersion, Revision: revision, Start: lastKey + "\x00"}.String()
}

// ContinueAtLatest returns a token that goes on from the same key as s but at the newest revision: what a client is
// offered when the revision of s has expired. ErrBadContinue.
func ContinueAtLatest(s string) (string, error) {
	t, err := parseToken(s)
	if err != nil {
		return "", err
	}
	t.Revision = latestRevision
	return t.String(), nil
}

// From resolves the position of the options in prefix: the first key that may be on the page, and the options with
// Match and Revision as a Continue token fixes them. ErrBadContinue. The start is another key below prefix, not prefix
// itself: a token that began at the prefix could not come from a page before.
func (o ListOptions) From(prefix string) (start string, resolved ListOptions, err error) {
	if o.Continue == "" {
		return prefix, o, nil
	}
	t, err := parseToken(o.Continue)
	if err != nil {
		return "", o, err
	}
	if !strings.HasPrefix(t.Start, prefix) || len(t.Start) == len(prefix) {
		return "", o, fmt.Errorf("%w: made for another prefix", ErrBadContinue)
	}
	o.Match, o.Revision = Exact, t.Revision
	if t.Revision < 0 {
		o.Match, o.Revision = Latest, 0
	}
	return t.Start, o, nil
}

// Page makes one page at revision of items, which come in key order from the page's first key on. It reads only as many
// as it needs to fill the page and to know what follows. Without a filter that is all items, as it counts those that
// remain. With a filter it is one item behind the page. It calls the filter on the caller's goroutine.
func Page(items iter.Seq[*Item], revision int64, opts ListOptions) *List {
	l := &List{Revision: revision}
	rest := int64(0)
	for item := range items {
		if opts.Filter != nil && !opts.Filter(item) {
			continue
		}
		if opts.Limit > 0 && int64(len(l.Items)) == opts.Limit {
			rest++
			if opts.Filter != nil {
				break
			}
			continue
		}
		l.Items = append(l.Items, item)
	}
	if rest == 0 {
		return l
	}
	// With a limit, rest counts only once the page is full, so the page has a last item.
	l.Continue = ContinueToken(l.Items[len(l.Items)-1].Key, revision)
	l.Remaining = rest
	if opts.Filter != nil {
		l.Remaining = -1
	}
	return l
}
