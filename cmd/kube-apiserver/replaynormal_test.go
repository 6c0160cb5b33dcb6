package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Texts that differ from run to run.
var (
	anyUID         = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	anyTime        = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000 UTC|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d`)
	anyVersion     = regexp.MustCompile(`(\\?"resourceVersion\\?":\\?")\d+(\\?")`)
	anyFingerprint = regexp.MustCompile(`X509SHA256=[0-9a-f]{64}`)
	anyToken       = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]*`)
	anyGenerated   = regexp.MustCompile(`\b(gs?)-[a-z0-9]{5}\b`)
	anyPeer        = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	anyServiceIP   = regexp.MustCompile(`\b10\.96\.\d+\.\d+\b`)
	anyAge         = regexp.MustCompile(`^\d+s$|^\d{4}-\d\d-\d\d$`)
	anySerial      = regexp.MustCompile(`SN=\d+|SKID=[0-9A-F:]*|AKID=[0-9A-F:]*`)
	anyLatency     = "apiserver.latency.k8s.io/"
)

// normal replaces what differs from run to run.
func (w *world) normal(s *server, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if !strings.HasPrefix(k, anyLatency) { // for slow requests
				out[k] = w.normalField(s, k, e)
			}
		}
		return out
	case map[string][]string:
		out := map[string][]string{}
		for k, all := range v {
			for _, one := range all {
				out[k] = append(out[k], w.normal(s, one).(string))
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = w.normal(s, v[i])
		}
		return out
	case string:
		return w.normalText(s, v)
	}
	return v
}

// normalField is normal of a field of an object.
func (w *world) normalField(s *server, name string, v any) any {
	text, isText := v.(string)
	switch name {
	case "managedFields", "columnDefinitions":
		return "*"
	case "resourceVersion", "clusterIP", "continue", "token", "signature":
		if isText && text != "" && text != "None" {
			return "*"
		}
	case "clusterIPs", "remainingItemCount":
		return "*"
	case "serverAddress": // the machine's
		return "*"
	case "causes", "resourceRules", "nonResourceRules":
		if list, ok := v.([]any); ok { // in no order
			v = slices.SortedFunc(slices.Values(list), func(a, b any) int {
				x, _ := json.Marshal(a)
				y, _ := json.Marshal(b)
				return strings.Compare(string(x), string(y))
			})
		}
	}
	return w.normal(s, v)
}

func (w *world) normalText(s *server, text string) string {
	text = w.back.Replace(strings.ReplaceAll(text, s.url, "$SERVER"))
	text = anyUID.ReplaceAllString(text, "*")
	text = anyTime.ReplaceAllString(text, "*")
	text = anyFingerprint.ReplaceAllString(text, "X509SHA256=*")
	text = anyVersion.ReplaceAllString(text, `${1}*${2}`)
	text = anyToken.ReplaceAllString(text, "TOKEN")
	text = anyGenerated.ReplaceAllString(text, "$1-*")
	text = anyPeer.ReplaceAllString(text, "127.0.0.1:*")
	text = anySerial.ReplaceAllString(text, "*")
	text = anyServiceIP.ReplaceAllString(text, "10.96.*")
	return anyAge.ReplaceAllString(text, "*")
}
