package zpages

import (
	"mime"
	"slices"
	"strconv"
	"strings"
)

const (
	mediaText = "text/plain"
	mediaJSON = "application/json"
	mediaYAML = "application/yaml"

	group  = "config.k8s.io"
	newest = "v1beta1"
)

// form is what a client gets: text, or JSON or YAML of an object in a version.
type form struct{ media, version string }

// negotiate returns the form that a client likes best. No preference is text. Objects must be asked for by their kind,
// group and version: application/json alone is refused.
func negotiate(accept, kind string) (form, bool) {
	if strings.TrimSpace(accept) == "" {
		return form{media: mediaText}, true
	}
	type offer struct {
		form
		q float64
	}
	var offers []offer
	for clause := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		o := offer{q: 1}
		if q, ok := params["q"]; ok {
			if o.q, err = strconv.ParseFloat(q, 64); err != nil || !(o.q > 0) {
				continue
			}
		}
		var known bool
		if o.form, known = formOf(media, params, kind); known {
			offers = append(offers, o)
		}
	}
	if len(offers) == 0 {
		return form{}, false
	}
	slices.SortStableFunc(offers, func(a, b offer) int {
		switch {
		case a.q > b.q:
			return -1
		case a.q < b.q:
			return 1
		}
		return 0
	})
	return offers[0].form, true
}

// formOf is the form that one clause of an Accept header asks for, if there is one.
func formOf(media string, params map[string]string, kind string) (form, bool) {
	as, g, version := params["as"], params["g"], params["v"]
	switch media {
	case mediaText, "text/*", "*/*":
		return form{media: mediaText}, as == "" && g == "" && version == ""
	case mediaJSON, mediaYAML:
		return form{media, version}, as == kind && g == group && (version == newest || version == "v1alpha1")
	}
	return form{}, false
}
