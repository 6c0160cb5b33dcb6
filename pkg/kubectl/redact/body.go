package redact

import (
	"encoding/json"
	"regexp"
	"strings"
)

var (
	// cut is how client-go ends a body that is too long for the level.
	cut = regexp.MustCompile(` \[truncated \d+ chars\]$`)
	// dump is how it shows a body that is no text.
	dump = regexp.MustCompile(`^[0-9a-f]{8}  [0-9a-f]{2} `)
	// suspect is what a body that is no JSON may hold a secret with.
	suspect = regexp.MustCompile(`(?i)secret|token|password|stringData`)
)

// lastApplied repeats a whole object, with its data.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Body returns the body of a request or an answer, whole or cut off, without the secrets in it: the data of Secrets and
// of what does not say its kind (patches), tokens and passwords. What cannot be read is left out.
func Body(text string) string {
	end := cut.FindString(text)
	text = strings.TrimSuffix(text, end)
	switch {
	case text == "":
		return end
	case dump.MatchString(text), text[0] != '{' && text[0] != '[' && suspect.MatchString(text):
		return masked + end
	case text[0] != '{' && text[0] != '[':
		return text + end
	}
	w := walker{text: text, data: mayHoldSecrets(text)}
	w.walk()
	return w.out.String() + end
}

// mayHoldSecrets judges by the kind that the document says of itself: those that carry Secrets, or none at all.
func mayHoldSecrets(text string) bool {
	d := json.NewDecoder(strings.NewReader(text))
	depth, key := 0, true
	last := ""
	for {
		token, err := d.Token()
		if err != nil {
			return true
		}
		switch v := token.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				depth++
			} else {
				depth--
			}
			key = true
			continue
		case string:
			if depth == 1 && key {
				last, key = v, false
				continue
			}
			if depth == 1 && last == "kind" {
				switch v {
				case "Secret", "SecretList", "List", "Table", "PartialObjectMetadata", "PartialObjectMetadataList":
					return true
				}
				return false
			}
		}
		key = true
	}
}

// walker copies a JSON document, token by token.
type walker struct {
	text string
	// data says that the values below "data" are secrets, and the copies of objects in annotations.
	data bool
	out  strings.Builder
	// open are the objects and lists around the next token, the outermost first.
	open []frame
}

// frame is an object or a list that is not at its end.
type frame struct {
	object bool
	// key is that of the next value of an object; named says that it has been read.
	key   string
	named bool
	// secret says that all values in it are.
	secret bool
}

// blank is what stands between tokens.
const blank = " \t\r\n:,"

// walk copies up to where the document ends or can no longer be read: what follows is left out, for it could be
// anything.
func (w *walker) walk() {
	d := json.NewDecoder(strings.NewReader(w.text))
	at := int64(0)
	for {
		token, err := d.Token()
		if err != nil {
			if strings.Trim(w.text[at:], blank) != "" {
				w.out.WriteString(masked)
			}
			return
		}
		raw := w.text[at:d.InputOffset()]
		at = d.InputOffset()
		w.token(token, raw)
	}
}

func (w *walker) token(token json.Token, raw string) {
	var top *frame
	if n := len(w.open); n > 0 {
		top = &w.open[n-1]
	}
	if delim, ok := token.(json.Delim); ok {
		w.out.WriteString(raw)
		switch {
		case delim == '{' || delim == '[':
			f := frame{object: delim == '{', secret: w.secret(top)}
			if top != nil {
				top.named = false
			}
			w.open = append(w.open, f)
		case top != nil:
			w.open = w.open[:len(w.open)-1]
		}
		return
	}
	if top != nil && top.object && !top.named {
		top.key, _ = token.(string)
		top.named = true
		w.out.WriteString(raw)
		return
	}
	if w.secret(top) && token != nil {
		value := strings.TrimLeft(raw, blank)
		w.out.WriteString(raw[:len(raw)-len(value)])
		w.out.WriteString(`"` + masked + `"`)
	} else {
		w.out.WriteString(raw)
	}
	if top != nil {
		top.named = false
	}
}

// secret reports whether the value that comes next in f is a secret.
func (w *walker) secret(f *frame) bool {
	if f == nil {
		return false
	}
	if f.secret || !f.object {
		return f.secret
	}
	switch f.key {
	case "stringData", "token", "password":
		return true
	case "data", lastApplied:
		return w.data
	case "value": // of a JSON patch
		return len(w.open) == 2 && !w.open[0].object
	}
	return false
}
