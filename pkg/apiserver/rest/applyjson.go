package rest

import (
	"sigs.k8s.io/json"

	"bonsai/pkg/docbounds"
)

// maxPlainKey bounds keys in bytes. YAML allows 1,024 bytes for a key on one line, and an escape may take six bytes for
// one.
const maxPlainKey = 170

// plainConfig reads a configuration whose JSON YAML cannot understand in another way, as programs send it: in one line
// of ASCII, with whole numbers and without duplicate keys. An apply is defined as YAML, and reading YAML takes twenty
// times as long. It returns false for everything else, also for invalid bodies, so that the YAML parser words the
// errors.
func plainConfig(body []byte, bounds docbounds.Bounds) (config map[string]any, ok bool) {
	if !oneLine(body) || docbounds.JSON(body, bounds) != nil {
		return nil, false
	}
	if strict, err := json.UnmarshalStrict(body, &config); err != nil || len(strict) > 0 || !plainValue(config) {
		return nil, false
	}
	return config, true
}

// oneLine reports whether body begins as an object, and has only printable ASCII characters and escapes that mean the
// same in JSON and YAML. It may end with a line feed.
func oneLine(body []byte) bool {
	if n := len(body); n > 0 && body[n-1] == '\n' {
		body = body[:n-1]
	}
	if len(body) == 0 || body[0] != '{' {
		return false
	}
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c < ' ' || c > '~':
			return false
		case c != '\\':
		case i+1 == len(body):
			return false
		default:
			i++
			switch body[i] {
			case '"', '\\', 'n', 'r', 't', 'b', 'f':
			case 'u': // of the first 256 characters
				if len(body) < i+3 || body[i+1] != '0' || body[i+2] != '0' {
					return false
				}
			default:
				return false
			}
		}
	}
	return true
}

// plainValue reports whether a decoded value has only short keys and whole numbers. Other numbers have many spellings,
// which the two formats need not read alike.
func plainValue(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if len(key) > maxPlainKey || !plainValue(value) {
				return false
			}
		}
	case []any:
		for _, value := range v {
			if !plainValue(value) {
				return false
			}
		}
	case float64:
		return false
	}
	return true
}
