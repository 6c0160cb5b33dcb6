package serve

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/traces"
)

// The fields by which a list selects.
const (
	selectName      = "metadata.name"
	selectNamespace = "metadata.namespace"
	selectKind      = "object.kind"
	selectResource  = "object.resource"
	selectObject    = "object.name"
	selectUID       = "object.uid"
)

const (
	// maxPage bounds a page, also where no limit is given. More have a continue token.
	maxPage = 10_000
	// maxSlowest bounds the parameter slowest.
	maxSlowest = 1000
	// maxSince is more than any store has, and keeps the sum in range.
	maxSince = 10 * 365 * 24 * time.Hour
)

// selectorOf reads the parameter fieldSelector: the wanted value of each field.
func selectorOf(parameters url.Values) (map[string]string, error) {
	selector, err := fields.ParseSelector(parameters.Get("fieldSelector"))
	if err != nil {
		return nil, fmt.Errorf("fieldSelector: %w", err)
	}
	out := map[string]string{}
	for _, r := range selector.Requirements() {
		switch r.Field {
		case selectName, selectNamespace, selectKind, selectResource, selectObject, selectUID:
		default:
			return nil, fmt.Errorf("field label not supported: %s (supported: %s, %s, %s, %s, %s)", r.Field, selectKind,
				selectResource, selectObject, selectUID, selectName)
		}
		if r.Operator != selection.Equals && r.Operator != selection.DoubleEquals {
			return nil, fmt.Errorf("fieldSelector: %s: only = is supported, not %s", r.Field, r.Operator)
		}
		if known, twice := out[r.Field]; twice && known != r.Value {
			return nil, fmt.Errorf("fieldSelector: %s has two values", r.Field)
		}
		out[r.Field] = r.Value
	}
	return out, nil
}

// query reads the parameters of a list. Nil without an error is a list that nothing can be in.
func (h *Handler) query(parameters url.Values, t target) (*traces.Query, error) {
	wanted, err := selectorOf(parameters)
	if err != nil {
		return nil, err
	}
	q := &traces.Query{Cluster: t.resource != "traces", Namespace: t.namespace, Kind: wanted[selectKind],
		Resource: wanted[selectResource], Name: wanted[selectObject], UID: types.UID(wanted[selectUID]), Limit: maxPage}
	if since := parameters.Get("since"); since != "" {
		d, err := time.ParseDuration(since)
		if err != nil || d < 0 || d > maxSince {
			return nil, fmt.Errorf("since: %q is no duration such as 30m, from 0 to 10 years", since)
		}
		q.Since = h.now().Add(-d).UnixNano()
	}
	if q.Slowest, err = number(parameters, "slowest", 1, maxSlowest); err != nil {
		return nil, err
	}
	limit, err := number(parameters, "limit", 0, 1<<62)
	if err != nil {
		return nil, err
	}
	if limit > 0 {
		q.Limit = min(limit, maxPage)
	}
	if token := parameters.Get("continue"); token != "" {
		if q.Slowest > 0 {
			return nil, fmt.Errorf("continue: a list of the slowest has no next page")
		}
		if q.After, err = positionOf(token); err != nil {
			return nil, err
		}
	}
	labelled, err := labels.Parse(parameters.Get("labelSelector"))
	if err != nil {
		return nil, fmt.Errorf("labelSelector: %w", err)
	}
	// Traces have no labels.
	possible := labelled.Matches(labels.Set{})
	if ns := wanted[selectNamespace]; ns != "" {
		possible = possible && !q.Cluster && (q.Namespace == "" || q.Namespace == ns)
		q.Namespace = ns
	}
	if name := wanted[selectName]; name != "" {
		possible = possible && (q.UID == "" || string(q.UID) == name)
		q.UID = types.UID(name)
	}
	if !possible {
		return nil, nil
	}
	return q, nil
}

// number reads a parameter that is a number from least to most; 0 if it is missing.
func number(parameters url.Values, name string, least, most int) (int, error) {
	text := parameters.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s: %q is no number from %d to %d", name, text, least, most)
	}
	return n, nil
}

// tokenOf and positionOf are a continue token: a position as JSON. It says nothing secret, and one that a client made
// up itself only begins its list elsewhere.
func tokenOf(p traces.Position) string {
	text, _ := json.Marshal(p) // of texts alone
	return base64.RawURLEncoding.EncodeToString(text)
}

func positionOf(token string) (p traces.Position, err error) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || p == (traces.Position{}) {
		return p, fmt.Errorf("continue: the token is not one of this server")
	}
	return p, nil
}
